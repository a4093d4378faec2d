/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The codec by which a slot migration is compressed: the strongest one that repl-compression allows
 * on both nodes. The source offers its codecs in SYNCSLOTS ESTABLISH (CAPA), to
 * nodes that understand it; the target names one in its reply. Main thread only. */
#ifndef CLUSTER_SLOT_PACK_H
#define CLUSTER_SLOT_PACK_H

#include <stdbool.h>

#include "base/slice.h"
#include "io/compress.h"

/* This node may send and receive streams by this codec. */
bool slotPackHas(compressCodec codec);
/* The strongest codec in a list separated by commas that this node has; COMPRESS_NONE: there is
 * none. Unknown names are ignored. */
compressCodec slotPackChoose(slice codecs);

#endif
