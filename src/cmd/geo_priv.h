/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of geo commands share. */
#ifndef CMD_GEO_PRIV_H
#define CMD_GEO_PRIV_H

#include "ds/geohash.h"
#include "engine/ctx.h"

/* Arguments `place` and the next as longitude and latitude. False: the error was replied. */
bool geoArgPoint(ctx *c, int place, geoPoint *out);
/* Argument `place` as a unit: its metres. False: the error was replied. */
bool geoArgUnit(ctx *c, int place, double *metres);
/* A distance in some unit, as text with four decimals. */
void geoReplyDistance(ctx *c, double distance);
/* A pair of longitude and latitude. */
void geoReplyPoint(ctx *c, const geoPoint *p);

#endif
