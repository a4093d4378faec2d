/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of keys: a name, which messages and modules see, and the class that decides who wants it.
 * A command passes the address of its event to ctxKeyChanged() or ctxKeyEvent(), so nothing is
 * looked up at run time. */
#ifndef ENGINE_KEY_EVENT_H
#define ENGINE_KEY_EVENT_H

#include <stdint.h>

/* Classes as the letters of notify-keyspace-events select them, with the numbers of the module
 * API. */
enum notifyFlag {
    NOTIFY_KEYSPACE = 1 << 0,  /* K: not a class, but the channel that is named after the key */
    NOTIFY_KEYEVENT = 1 << 1,  /* E: the channel that is named after the event */
    NOTIFY_GENERIC = 1 << 2,   /* g */
    NOTIFY_STRING = 1 << 3,    /* $ */
    NOTIFY_LIST = 1 << 4,      /* l */
    NOTIFY_SET = 1 << 5,       /* s */
    NOTIFY_HASH = 1 << 6,      /* h */
    NOTIFY_ZSET = 1 << 7,      /* z */
    NOTIFY_EXPIRED = 1 << 8,   /* x */
    NOTIFY_EVICTED = 1 << 9,   /* e */
    NOTIFY_STREAM = 1 << 10,   /* t */
    NOTIFY_KEY_MISS = 1 << 11, /* m */
    NOTIFY_LOADED = 1 << 12,   /* for modules only: a key was loaded from a file */
    NOTIFY_MODULE = 1 << 13,   /* d: published by a module */
    NOTIFY_NEW = 1 << 14,      /* n */
    NOTIFY_PATHHASH = 1 << 15, /* p */
    NOTIFY_ALL = (NOTIFY_KEY_MISS - NOTIFY_GENERIC) | NOTIFY_MODULE | NOTIFY_PATHHASH, /* A */
};

/* Borrowed for the call wherever it is passed; those of the server are constants. */
typedef struct keyEvent {
    const char *name;
    uint32_t class; /* one of notifyFlag */
} keyEvent;

/* eventDropped: `del` of the keys of a lost slot, which modules are told of, and channels are
 * not. */
extern const keyEvent eventDropped;
extern const keyEvent eventCopyTo, eventDel, eventExpire, eventMoveFrom, eventMoveTo, eventPersist,
    eventRenameFrom, eventRenameTo, eventRestore;
extern const keyEvent eventAppend, eventIncrby, eventIncrbyfloat, eventPfadd, eventSet, eventSetbit,
    eventSetrange;
extern const keyEvent eventLinsert, eventLpop, eventLpush, eventLrem, eventLset, eventLtrim,
    eventRpop, eventRpush, eventSortstore;
/* eventHashExpired: of fields that expire by themselves; eventHexpired: by a command. */
extern const keyEvent eventHashExpired, eventHdel, eventHexpire, eventHexpired, eventHincrby,
    eventHincrbyfloat, eventHpersist, eventHset;
extern const keyEvent eventSadd, eventSdiffstore, eventSexpire, eventSexpired, eventSinterstore,
    eventSpersist, eventSpop, eventSrem, eventSunionstore;
extern const keyEvent eventGeoradiusstore, eventGeosearchstore, eventZadd, eventZdiffstore,
    eventZexpire, eventZexpired, eventZincr, eventZinterstore, eventZpersist, eventZpopmax,
    eventZpopmin, eventZrangestore, eventZrem, eventZremrangebylex, eventZremrangebyrank,
    eventZremrangebyscore, eventZunionstore;
extern const keyEvent eventXadd, eventXdel, eventXgroupCreate, eventXgroupCreateconsumer,
    eventXgroupDelconsumer, eventXgroupDestroy, eventXgroupSetid, eventXsetid, eventXtrim;
extern const keyEvent eventPhdel, eventPhdelprefix, eventPhmset, eventPhset;
extern const keyEvent eventExpired;
extern const keyEvent eventEvicted;
extern const keyEvent eventKeymiss;
extern const keyEvent eventNew;
extern const keyEvent eventLoaded;

#endif
