/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels that commands of modules use: they report them per request. Main thread only. */
#ifndef ENGINE_CHANNEL_USE_H
#define ENGINE_CHANNEL_USE_H

#include "engine/command.h"

/* Flags of a position that commandSpec.find_channels reports. */
enum channelUse {
    CHANNEL_USE_PATTERN = 1u << 0, /* it is a pattern of channels */
    CHANNEL_USE_PUBLISH = 1u << 1,
    CHANNEL_USE_SUBSCRIBE = 1u << 2,
    CHANNEL_USE_UNSUBSCRIBE = 1u << 3,
};

/* The channels of a request whose command has find_channels: in `few`, which has room for `max`, or
 * in memory that the caller frees if it is not `few`. */
keyPosition *commandChannels(const command *cmd, const slice *argv, int argc, keyPosition *few,
                             int max, int *count);

#endif
