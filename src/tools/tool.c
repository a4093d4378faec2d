/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Command line programs (tool.h). */
#include "tools/tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/build_info.h"

bool toolIsVersionOption(const char *argument) {
    return strcmp(argument, "-v") == 0 || strcmp(argument, "--version") == 0;
}

bool toolWantsVersion(const char *argument, const char *program) {
    if (!toolIsVersionOption(argument)) return false;
    printf("%s v=%s sha=%s:%s malloc=%s bits=%d build=%s\n", program, SERVER_VERSION, buildGitSha,
           buildGitDirty, memAllocatorName(), (int)(sizeof(void *) * 8), buildGitSha);
    return true;
}

void toolCheckPath(const char *path) {
    if (strlen(path) < PATH_MAX) return;
    fprintf(stderr, "The path is longer than %d bytes.\n", PATH_MAX - 1);
    exit(1);
}
