/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Identifies the source this binary was built from. The Makefile generates the definitions; they
 * are constant. */
#ifndef BASE_BUILD_INFO_H
#define BASE_BUILD_INFO_H

/* The name of this project. The programs keep the names that Valkey's users know. */
#define SERVER_PRODUCT "Fenwick"
/* The version of Valkey this server is compatible with. */
#define SERVER_VERSION "9.1.2"
/* The version of this project: see CHANGELOG.md. */
#define SERVER_RELEASE "0.9.0"
/* The first eight digits of the commit, "00000000" when built outside git. */
extern const char buildGitSha[];
/* "1" when src/ differed from that commit, else "0". */
extern const char buildGitDirty[];

#endif
