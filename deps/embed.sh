#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Prints the C file that holds a file's bytes: embed.sh FILE HEADER ARRAY SIZE
printf '#include "%s"\nconst unsigned char %s[] = {\n' "$2" "$3"
od -An -v -tu1 "$1" | sed 's/ *\([0-9][0-9]*\)/\1,/g'
printf '};\nconst size_t %s = sizeof(%s);\n' "$4" "$3"
