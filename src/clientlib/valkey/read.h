/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reader: parses replies (RESP2 and RESP3) from bytes in the order of their arrival,
 * independent of any socket. It builds replies by functions that the caller may supply. A reader
 * belongs to one thread at a time. */
#ifndef VALKEY_READ_H
#define VALKEY_READ_H

#include <stddef.h>
#include <stdio.h> /* programs rely on it */

#include <valkey/visibility.h>

#define VALKEY_ERR -1
#define VALKEY_OK 0

/* Values of `err` in readers and contexts; `errstr` has the reason. */
#define VALKEY_ERR_IO 1 /* reading, writing or connecting failed; errno has the cause */
#define VALKEY_ERR_OTHER 2
#define VALKEY_ERR_EOF 3      /* the server has closed the connection */
#define VALKEY_ERR_PROTOCOL 4 /* the server sent something that is not a reply */
#define VALKEY_ERR_OOM 5
#define VALKEY_ERR_TIMEOUT 6

#define VALKEY_REPLY_STRING 1
#define VALKEY_REPLY_ARRAY 2
#define VALKEY_REPLY_INTEGER 3
#define VALKEY_REPLY_NIL 4
#define VALKEY_REPLY_STATUS 5
#define VALKEY_REPLY_ERROR 6
#define VALKEY_REPLY_DOUBLE 7
#define VALKEY_REPLY_BOOL 8
#define VALKEY_REPLY_MAP 9
#define VALKEY_REPLY_SET 10
#define VALKEY_REPLY_ATTR 11
#define VALKEY_REPLY_PUSH 12
#define VALKEY_REPLY_BIGNUM 13
#define VALKEY_REPLY_VERB 14

/* Default of `maxbuf`: an empty buffer that is larger is given back (by default also smaller
 * ones). */
#define VALKEY_READER_MAX_BUF (1024 * 16)
/* Default of `maxelements`. */
#define VALKEY_READER_MAX_ARRAY_ELEMENTS ((1LL << 32) - 1)

/* Default of `maxdepth`. */
#define VALKEY_READER_MAX_DEPTH 1024

#ifdef __cplusplus
extern "C" {
#endif

/* An item being read, as the reply functions see it. */
typedef struct valkeyReadTask {
    int type;           /* VALKEY_REPLY_* */
    long long elements; /* of aggregates: number of items, twice the pairs of a map; -1 unknown */
    int idx;            /* index in the parent */
    void *obj;          /* what the reply function returned for it */
    struct valkeyReadTask *parent; /* the aggregate that contains it, or NULL */
    void *privdata;                /* of the reader */
} valkeyReadTask;

/* Functions that build replies. Each returns an object other than NULL, or NULL if memory is
 * exhausted; it enters the object in task->parent->obj itself. Without functions (NULL) nothing is
 * built, and the replies are (void *)type. freeObject() is called for a top-level object that will
 * not be returned. */
typedef struct valkeyReplyObjectFunctions {
    void *(*createString)(const valkeyReadTask *, char *, size_t);
    void *(*createArray)(const valkeyReadTask *, size_t);
    void *(*createInteger)(const valkeyReadTask *, long long);
    void *(*createDouble)(const valkeyReadTask *, double, char *, size_t);
    void *(*createNil)(const valkeyReadTask *);
    void *(*createBool)(const valkeyReadTask *, int);
    void (*freeObject)(void *);
} valkeyReplyObjectFunctions;

typedef struct valkeyReader {
    int err; /* 0 or VALKEY_ERR_*; an error is final */
    char errstr[128];

    char *buf;             /* bytes received; NULL if there are none */
    size_t pos;            /* first byte not yet parsed */
    size_t len;            /* end of the bytes received */
    size_t maxbuf;         /* an empty buffer larger than this is given back; 0: never */
    long long maxelements; /* longest aggregate that is accepted; 0: any */
    int maxdepth;          /* most aggregates that are open at a time; 0: VALKEY_READER_MAX_DEPTH */

    valkeyReadTask **task; /* aggregates that are open, and the item being read */
    int tasks;             /* allocated */
    int ridx;              /* index of the item being read; -1 between replies */
    void *reply;           /* top-level object being built */

    valkeyReplyObjectFunctions *fn;
    void *privdata;
} valkeyReader;

/* NULL if memory is exhausted. `fn` is borrowed. */
LIBVALKEY_API valkeyReader *valkeyReaderCreateWithFunctions(valkeyReplyObjectFunctions *fn);
LIBVALKEY_API void valkeyReaderFree(valkeyReader *r);
/* Appends bytes, which are copied. VALKEY_OK, or VALKEY_ERR with r->err. */
LIBVALKEY_API int valkeyReaderFeed(valkeyReader *r, const char *buf, size_t len);
/* Lends the free tail of the buffer, so that bytes are read from a socket without a copy: `*buf`
 * with `*cap` bytes, at least `minbytes` and at least 1. Valid until the next call for this reader;
 * valkeyReaderCommitRead() then adds the first `len` of them to what was received (0 for none).
 * VALKEY_OK, or VALKEY_ERR with r->err. */
LIBVALKEY_API int valkeyReaderGetReadBuf(valkeyReader *r, char **buf, size_t *cap, size_t minbytes);
LIBVALKEY_API void valkeyReaderCommitRead(valkeyReader *r, size_t len);
/* The next complete reply, which is the caller's to free, or NULL if there is none yet. `reply`
 * NULL: it is freed. VALKEY_OK, or VALKEY_ERR with r->err. */
LIBVALKEY_API int valkeyReaderGetReply(valkeyReader *r, void **reply);

#define valkeyReaderSetPrivdata(_r, _p) (int)(((valkeyReader *)(_r))->privdata = (_p))
#define valkeyReaderGetObject(_r) (((valkeyReader *)(_r))->reply)
#define valkeyReaderGetError(_r) (((valkeyReader *)(_r))->errstr)

#ifdef __cplusplus
}
#endif

#endif
