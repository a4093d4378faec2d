/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passwords: only their SHA-256 is stored. Hashing and comparison are libcrypto's. ANY_THREAD. */
#ifndef ACL_PASSWORD_H
#define ACL_PASSWORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* `hash` receives the 32 bytes of the SHA-256. */
void passwordHash(slice password, uint8_t *hash);
/* Parses exactly 64 lower-case hexadecimal digits. */
bool passwordHashParse(slice text, uint8_t *hash);
/* Compares two hashes in constant time. */
bool passwordHashesEqual(const uint8_t *a, const uint8_t *b);
/* Overwrites the bytes of an argument that was a password, in the request it was received in. */
void passwordWipe(slice argument);

#endif
