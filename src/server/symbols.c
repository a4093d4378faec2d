/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of functions. Those of shared objects are what dladdr() finds. The program exports none of
 * its own, as modules may have functions of the same names, so its names are read from the section
 * .symtab of its file, which is mapped at the first lookup and remains so.
 *
 * Invariant: `table` lies within the mapped file, or is NULL: the file cannot be read, or it was
 * stripped. A lookup takes O(functions of the program). */
#define _GNU_SOURCE /* for dladdr() */
#include "server/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"

static struct {
    const void *base; /* of the program */
    const char *name; /* the process title overwrites the name known to the loader */
    bool is_read;
    uintptr_t bias; /* what is added to the addresses in the file */
    const ElfW(Sym) * table;
    size_t count;
    const char *texts;
    size_t texts_bytes;
} program;

void symbolsInit(const char *name) {
    Dl_info info;
    program.name = name;
    if (dladdr((void *)symbolsInit, &info)) program.base = info.dli_fbase;
}

/* Whether a section's bytes are in the file. */
static bool isInside(const ElfW(Shdr) * section, size_t file_bytes) {
    return section->sh_offset <= file_bytes && section->sh_size <= file_bytes - section->sh_offset;
}

static void findTable(const char *file, size_t bytes) {
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)file;
    if (bytes < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG)) return;
    if (header->e_shentsize != sizeof(ElfW(Shdr)) || header->e_shoff > bytes) return;
    if ((bytes - header->e_shoff) / sizeof(ElfW(Shdr)) < header->e_shnum) return;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(file + header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++) {
        const ElfW(Shdr) *section = &sections[i];
        if (section->sh_type != SHT_SYMTAB || section->sh_link >= header->e_shnum) continue;
        const ElfW(Shdr) *texts = &sections[section->sh_link];
        if (!isInside(section, bytes) || !isInside(texts, bytes)) continue;
        if (texts->sh_size == 0 || file[texts->sh_offset + texts->sh_size - 1] != '\0') continue;
        program.texts = file + texts->sh_offset;
        program.texts_bytes = texts->sh_size;
        program.count = section->sh_size / sizeof(ElfW(Sym));
        program.bias = header->e_type == ET_DYN ? (uintptr_t)program.base : 0;
        program.table = (const ElfW(Sym) *)(file + section->sh_offset);
    }
}

/* The file of the running program, even if another one has its name now. */
static void readProgram(void) {
    program.is_read = true;
    int fd = fileOpen("/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) findTable(file, (size_t)st.st_size);
    }
    close(fd);
}

/* The function of the program that has the address. */
static void findInProgram(uintptr_t address, symbol *out) {
    if (!program.is_read) readProgram();
    for (size_t i = 0; program.table && i < program.count; i++) {
        const ElfW(Sym) *entry = &program.table[i];
        uintptr_t start = program.bias + entry->st_value;
        if ((entry->st_info & 0xf) != STT_FUNC || entry->st_name >= program.texts_bytes) continue;
        if (address < start || address - start >= entry->st_size) continue;
        out->name = program.texts + entry->st_name;
        out->start = (const void *)start;
        return;
    }
}

bool symbolFind(const void *address, symbol *out) {
    Dl_info info;
    if (!dladdr(address, &info)) return false;
    *out = (symbol){info.dli_fname, info.dli_fbase, info.dli_sname, info.dli_saddr};
    if (info.dli_fbase != program.base) return true;
    out->object = program.name;
    findInProgram((uintptr_t)address, out);
    return true;
}
