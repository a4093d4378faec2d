/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Index of patterns by their literal prefix, the bytes before the first special character. A
 * channel is compared only with patterns whose prefix it starts with, and with those that have
 * none. Main thread only. */
#ifndef PUBSUB_PATTERN_INDEX_H
#define PUBSUB_PATTERN_INDEX_H

#include "pubsub/channels.h"

/* Prefixes are cut at this length. */
enum { PATTERN_PREFIX_MAX = 63 };

/* Stores the literal prefix of a pattern; returns its length. */
size_t patternPrefix(slice pattern, char prefix[PATTERN_PREFIX_MAX]);
/* A pattern came into being, or is about to be freed. */
void patternIndexAdd(pubsubChannel *pattern);
void patternIndexRemove(pubsubChannel *pattern);
/* Visits the patterns that match a channel; `visit` must not change subscriptions. Takes one lookup
 * for each length of a prefix that exists (PATTERN_PREFIX_MAX at most), and a comparison for each
 * pattern with that prefix. */
void patternIndexMatch(slice channel, channelVisitProc *visit, void *arg);

#endif
