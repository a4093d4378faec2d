/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to resp: one block of output. The borrowed part of a blob, if any, is sent before the block's own bytes.
 * `start` and `used` are valid only while the block is not the open block of its outbuf. */
#ifndef RESP_OUTBLOCK_H
#define RESP_OUTBLOCK_H

#include "resp/resp.h"

struct outblock {
    outblock *next;
    blob *lent;       /* one reference, held until outbufReap(); NULL if nothing is borrowed */
    size_t lent_at;   /* offset of the next byte to send */
    size_t lent_left; /* bytes still to send */
    size_t lent_len;  /* bytes borrowed originally, as counted in `memory` */
    uint32_t size;    /* of the whole block, including this header */
    uint32_t start;   /* own bytes already sent */
    uint32_t used;    /* end of the own bytes */
    char bytes[];
};

#endif
