/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of primary.c that primary_sync.c calls, and of primary_sync.c that primary.c calls. */
#ifndef PSYNC_PRIMARY_PRIV_H
#define PSYNC_PRIMARY_PRIV_H

#include "psync/primary_peer.h"

void primaryAddPeer(replPrimary *p, replPeer *peer, peerState state);
void primarySetOnline(replPrimary *p, replPeer *peer, int64_t now_ms);

/* The peer, which has the dataset, has acknowledged it: it gets the stream. */
void primaryStartAcked(replPrimary *p, replPeer *peer);
/* The codec for it: the strongest one that both sides have and allow. */
peerCodec primaryCodecFor(const replPrimary *p, const replPeer *peer);
/* The peer needs the dataset. */
void primaryFullSync(replPrimary *p, replPeer *peer, int64_t now_ms);
/* Logs that the peer has the dataset and gets the stream. */
void primarySyncSucceeded(const replPrimary *p, const replPeer *peer);
/* A dataset channel that has waited for a first byte of the stream: there may be one now. */
void primaryNoteStream(const replPrimary *p, replPeer *peer);
/* A peer that the running child saves for was closed. */
void primarySaveLostPeer(replPrimary *p);
/* Once per second: keeps the connection of a waiting peer alive; closes dataset channels whose main
 * channel does not come. */
void primaryKeepWaiting(replPrimary *p, replPeer *peer, int64_t now_ms);

#endif
