/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Macros that build the tables of crc64.c and hash.c at compile time. A CRC is linear over XOR: the
 * entry of byte i is the XOR of the entries of the bits set in i, so the eight single-bit constants
 * determine the other 248 entries. */
#ifndef BASE_CRC_TABLE_H
#define BASE_CRC_TABLE_H

#define CRC_BIT(i, bit, value) ((i) >> (bit)&1 ? (value) : 0)
#define CRC_ENTRY(i, b0, b1, b2, b3, b4, b5, b6, b7) \
    (CRC_BIT(i, 0, b0) ^ CRC_BIT(i, 1, b1) ^ CRC_BIT(i, 2, b2) ^ CRC_BIT(i, 3, b3) ^ \
     CRC_BIT(i, 4, b4) ^ CRC_BIT(i, 5, b5) ^ CRC_BIT(i, 6, b6) ^ CRC_BIT(i, 7, b7))
#define CRC_4(i, ...) \
    CRC_ENTRY(i, __VA_ARGS__), CRC_ENTRY((i) + 1, __VA_ARGS__), CRC_ENTRY((i) + 2, __VA_ARGS__), \
        CRC_ENTRY((i) + 3, __VA_ARGS__)
#define CRC_16(i, ...) \
    CRC_4(i, __VA_ARGS__), CRC_4((i) + 4, __VA_ARGS__), CRC_4((i) + 8, __VA_ARGS__), \
        CRC_4((i) + 12, __VA_ARGS__)
#define CRC_64(i, ...) \
    CRC_16(i, __VA_ARGS__), CRC_16((i) + 16, __VA_ARGS__), CRC_16((i) + 32, __VA_ARGS__), \
        CRC_16((i) + 48, __VA_ARGS__)
/* The 256 entries derived from those of the bytes 1, 2, 4 ... 128. */
#define CRC_TABLE(...) \
    { \
        CRC_64(0, __VA_ARGS__), CRC_64(64, __VA_ARGS__), CRC_64(128, __VA_ARGS__), \
            CRC_64(192, __VA_ARGS__) \
    }

#endif
