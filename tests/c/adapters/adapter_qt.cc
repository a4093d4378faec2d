/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for Qt. */
#include <QCoreApplication>

#include <valkey/adapters/qt.h>

#include "adapter_test.h"

static QCoreApplication *app;
static QObject *parent;

static void begin() {
    static int argc = 1;
    static char name[] = "adapter", *argv[] = {name, nullptr};
    app = new QCoreApplication(argc, argv);
    parent = new QObject();
}
static void turn() {
    app->processEvents();
    /* Only an application that runs does this itself. */
    app->sendPostedEvents(nullptr, QEvent::DeferredDelete);
}
static void end() {
    delete parent;
    delete app;
}
static int attach(valkeyAsyncContext *ac) { return valkeyQtAttachAdapter(ac, parent); }
static int use(valkeyClusterOptions *options) { return valkeyClusterOptionsUseQt(options, parent); }

extern "C" const adapterLoop adapter_loop = {"qt", begin, attach, use, turn, end};
