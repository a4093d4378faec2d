/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of the reply of INFO. */
#ifndef TOOLS_CLI_INFO_H
#define TOOLS_CLI_INFO_H

#include <stdint.h>

/* The number of a field, 0 if it is missing. */
int64_t infoNumber(const char *info, const char *field);
/* Number of keys in all databases. */
int64_t infoKeys(const char *info);

#endif
