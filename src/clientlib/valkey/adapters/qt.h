/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for the event loop of Qt 5 and 6 (C++). It needs no moc. */
#ifndef VALKEY_ADAPTERS_QT_H
#define VALKEY_ADAPTERS_QT_H

#include <QObject>
#include <QSocketNotifier>
#include <QTimer>

#include <valkey/async.h>
/* Qt's keyword of this name is a field there. */
#pragma push_macro("slots")
#undef slots
#include <valkey/cluster.h>
#pragma pop_macro("slots")

/* Serves one context, until it ends. */
class ValkeyQtAdapter : public QObject {
  public:
    explicit ValkeyQtAdapter(QObject *parent = nullptr) : QObject(parent) {}
    ~ValkeyQtAdapter() override {
        if (m_ctx) forget();
    }

    ValkeyQtAdapter(const ValkeyQtAdapter &) = delete;
    ValkeyQtAdapter &operator=(const ValkeyQtAdapter &) = delete;

    /* VALKEY_ERR if the context has an adapter already. */
    int setContext(valkeyAsyncContext *ac) {
        if (ac->ev.data) return VALKEY_ERR;
        m_ctx = ac;
        ac->ev.data = this;
        ac->ev.addRead = [](void *adapter) { of(adapter)->watch(&ValkeyQtAdapter::m_read, true); };
        ac->ev.delRead = [](void *adapter) { of(adapter)->watch(&ValkeyQtAdapter::m_read, false); };
        ac->ev.addWrite = [](void *adapter) {
            of(adapter)->watch(&ValkeyQtAdapter::m_write, true);
        };
        ac->ev.delWrite = [](void *adapter) {
            of(adapter)->watch(&ValkeyQtAdapter::m_write, false);
        };
        ac->ev.cleanup = [](void *adapter) { of(adapter)->cleanup(); };
        ac->ev.scheduleTimer = [](void *adapter, struct timeval tv) {
            of(adapter)->startTimer(tv);
        };
        return VALKEY_OK;
    }

    /* The object deletes itself when its context has ended. */
    void deleteWithContext() { m_own = true; }

  private:
    using Notifier = QSocketNotifier *ValkeyQtAdapter::*;

    static ValkeyQtAdapter *of(void *adapter) { return static_cast<ValkeyQtAdapter *>(adapter); }

    void watch(Notifier which, bool on) {
        bool reads = which == &ValkeyQtAdapter::m_read;
        if (!(this->*which)) {
            if (!on) return;
            auto type = reads ? QSocketNotifier::Read : QSocketNotifier::Write;
            this->*which = new QSocketNotifier(m_ctx->c.fd, type, this);
            connect(this->*which, &QSocketNotifier::activated, this, [this, reads]() {
                if (m_ctx) reads ? valkeyAsyncHandleRead(m_ctx) : valkeyAsyncHandleWrite(m_ctx);
            });
        }
        (this->*which)->setEnabled(on);
    }

    void startTimer(struct timeval tv) {
        if (!m_timer) {
            m_timer = new QTimer(this);
            m_timer->setSingleShot(true);
            connect(m_timer, &QTimer::timeout, this, [this]() {
                if (m_ctx) valkeyAsyncHandleTimeout(m_ctx);
            });
        }
        m_timer->start(static_cast<int>(tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000));
    }

    /* The objects may be those whose signal is being handled, so they are deleted later. */
    void cleanup() {
        m_ctx = nullptr;
        for (Notifier which : {&ValkeyQtAdapter::m_read, &ValkeyQtAdapter::m_write}) {
            if (!(this->*which)) continue;
            (this->*which)->setEnabled(false);
            (this->*which)->deleteLater();
            this->*which = nullptr;
        }
        if (m_timer) m_timer->stop();
        if (m_own) deleteLater();
    }

    /* The context loses its event loop. */
    void forget() {
        auto &ev = m_ctx->ev;
        ev.data = nullptr;
        ev.addRead = ev.delRead = ev.addWrite = ev.delWrite = ev.cleanup = nullptr;
        ev.scheduleTimer = nullptr;
    }

    valkeyAsyncContext *m_ctx = nullptr;
    QSocketNotifier *m_read = nullptr;
    QSocketNotifier *m_write = nullptr;
    QTimer *m_timer = nullptr;
    bool m_own = false;
};

/* For contexts of a cluster: an adapter for each, children of `parent`. */
static inline int valkeyQtAttachAdapter(valkeyAsyncContext *ac, void *data) {
    auto *adapter = new ValkeyQtAdapter(static_cast<QObject *>(data));
    if (adapter->setContext(ac) != VALKEY_OK) {
        delete adapter;
        return VALKEY_ERR;
    }
    adapter->deleteWithContext();
    return VALKEY_OK;
}

static inline int valkeyClusterOptionsUseQt(valkeyClusterOptions *options, QObject *parent) {
    options->attach_fn = valkeyQtAttachAdapter;
    options->attach_data = parent;
    return VALKEY_OK;
}

#endif
