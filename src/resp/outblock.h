/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to resp: one block of output. A borrowed piece of a blob, if any, is sent before the
 * block's own bytes. `start` and `used` are true only while the block is not the open one of its outbuf. */
#ifndef RESP_OUTBLOCK_H
#define RESP_OUTBLOCK_H

#include "resp/resp.h"

struct outblock {
    outblock *next;
    blob *lent;       /* one reference, until outbufReap(); NULL: nothing borrowed */
    size_t lent_at;   /* its next byte to send */
    size_t lent_left; /* bytes of it still to send */
    size_t lent_len;  /* bytes of it borrowed at first, as `memory` counts them */
    uint32_t size;    /* of the whole block, this header included */
    uint32_t start;   /* own bytes already sent */
    uint32_t used;    /* end of the own bytes */
    char bytes[];
};

#endif
