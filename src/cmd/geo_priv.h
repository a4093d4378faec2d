/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of geo commands. */
#ifndef CMD_GEO_PRIV_H
#define CMD_GEO_PRIV_H

#include "ds/geohash.h"
#include "engine/ctx.h"

/* Parses argument `arg_index` and the next one as longitude and latitude. False: the error was
 * replied. */
bool geoArgPoint(ctx *c, int arg_index, geoPoint *out);
/* Parses argument `arg_index` as a unit, in metres. False: the error was replied. */
bool geoArgUnit(ctx *c, int arg_index, double *metres);
/* Replies a distance as text with four decimals. */
void geoReplyDistance(ctx *c, double distance);
/* Replies a pair of longitude and latitude. */
void geoReplyPoint(ctx *c, const geoPoint *p);

#endif
