/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for the main loop of GLib. */
#ifndef VALKEY_ADAPTERS_GLIB_H
#define VALKEY_ADAPTERS_GLIB_H

#include <glib.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

/* A source for g_source_attach(); the program releases its reference with g_source_unref(). */
typedef struct ValkeySource {
    GSource source;
    valkeyAsyncContext *ac; /* NULL: it has ended */
    GPollFD poll_fd;
    gint64 deadline; /* of g_get_monotonic_time(); -1: none */
} ValkeySource;

static void valkey_source_add_read(gpointer data) {
    ((ValkeySource *)data)->poll_fd.events |= G_IO_IN;
}
static void valkey_source_del_read(gpointer data) {
    ((ValkeySource *)data)->poll_fd.events &= (gushort)~G_IO_IN;
}
static void valkey_source_add_write(gpointer data) {
    ((ValkeySource *)data)->poll_fd.events |= G_IO_OUT;
}
static void valkey_source_del_write(gpointer data) {
    ((ValkeySource *)data)->poll_fd.events &= (gushort)~G_IO_OUT;
}

static void valkey_source_set_timeout(gpointer data, struct timeval tv) {
    ValkeySource *s = (ValkeySource *)data;
    s->deadline = g_get_monotonic_time() + (gint64)tv.tv_sec * 1000000 + tv.tv_usec;
    g_source_set_ready_time(&s->source, s->deadline);
}

static void valkey_source_cleanup(gpointer data) {
    ValkeySource *s = (ValkeySource *)data;
    s->ac = NULL;
    g_source_destroy(&s->source);
    g_source_unref(&s->source);
}

static gboolean valkey_source_prepare(GSource *source, gint *timeout) {
    (void)source;
    *timeout = -1;
    return FALSE;
}

static gboolean valkey_source_check(GSource *source) {
    ValkeySource *s = (ValkeySource *)source;
    /* Errors are reported although they are not asked for, and found by reading or writing. */
    return s->poll_fd.events && s->poll_fd.revents;
}

static gboolean valkey_source_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
    ValkeySource *s = (ValkeySource *)source;
    gushort ready = s->poll_fd.revents;
    if (ready & (G_IO_ERR | G_IO_HUP | G_IO_NVAL)) ready = G_IO_IN | G_IO_OUT;
    if (s->ac && (ready & s->poll_fd.events & G_IO_OUT)) valkeyAsyncHandleWrite(s->ac);
    if (s->ac && (ready & s->poll_fd.events & G_IO_IN)) valkeyAsyncHandleRead(s->ac);
    if (s->ac && s->deadline >= 0 && g_get_monotonic_time() >= s->deadline) {
        s->deadline = -1;
        g_source_set_ready_time(source, -1);
        valkeyAsyncHandleTimeout(s->ac);
    }
    if (callback) return callback(data);
    return s->ac ? TRUE : FALSE;
}

static void valkey_source_finalize(GSource *source) { (void)source; }

/* NULL if the context has an adapter already. */
static inline GSource *valkey_source_new(valkeyAsyncContext *ac) {
    static GSourceFuncs funcs = {
        valkey_source_prepare,
        valkey_source_check,
        valkey_source_dispatch,
        valkey_source_finalize,
        NULL,
        NULL,
    };
    ValkeySource *s;
    if (ac->ev.data) return NULL;
    s = (ValkeySource *)g_source_new(&funcs, sizeof(*s));
    s->ac = ac;
    s->deadline = -1;
    s->poll_fd.fd = ac->c.fd;
    s->poll_fd.events = 0;
    s->poll_fd.revents = 0;
    g_source_add_poll(&s->source, &s->poll_fd);
    g_source_ref(&s->source); /* the context's, until valkey_source_cleanup() */
    ac->ev.data = s;
    ac->ev.addRead = valkey_source_add_read;
    ac->ev.delRead = valkey_source_del_read;
    ac->ev.addWrite = valkey_source_add_write;
    ac->ev.delWrite = valkey_source_del_write;
    ac->ev.cleanup = valkey_source_cleanup;
    ac->ev.scheduleTimer = valkey_source_set_timeout;
    return &s->source;
}

/* For contexts of a cluster. */
static inline int valkeyGlibAttachAdapter(valkeyAsyncContext *ac, void *data) {
    GSource *source = valkey_source_new(ac);
    if (!source) return VALKEY_ERR;
    g_source_attach(source, (GMainContext *)data);
    g_source_unref(source);
    return VALKEY_OK;
}

static inline int valkeyClusterOptionsUseGlib(valkeyClusterOptions *options,
                                              GMainContext *context) {
    options->attach_fn = valkeyGlibAttachAdapter;
    options->attach_data = context;
    return VALKEY_OK;
}

#endif
