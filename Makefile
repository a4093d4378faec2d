# SPDX-License-Identifier: BSD-3-Clause
#
# The only makefile: no configure step, no recursive make. `make help` lists the targets.
#
# A folder's objects are $(wildcard src/<folder>/*.c), its layer is its row of src/layers.txt, a
# library is a row of deps/deps.txt: new files, folders, tests and libraries need no change here.
# Objects are in build/<profile>/, separately for each profile.
#
#: make                  build the programs into src/ (with libraries of the system: deps/install.sh)
#: make lib              the client library: build/<profile>/libvalkey.{a,so}
#: make run ARGS=...     install what is missing, build, start the server in the foreground
#: make quick            checks, and tests of what a change touches, in the debug build; under two minutes
#: make test             install what is missing, build, run what belongs to a change; ends with "N passed, N failed"
#: make test-long        what `make test` leaves out: further builds, ThreadSanitizer, arm64, minutes of fuzzing
#: make test-arm64       cross-build, C tests and a part of the Tcl suite in an emulator
#: make check            checks of the source: layers, sizes, format, generated files
#: make c-test           the C tests only; FOLDER=ds for those of one folder
#: make fuzz             every fuzzer for FUZZ_SECONDS (300); FUZZ_PLAIN=1 without sanitizers
#: make sim-faults       faults built into the cluster bus and Sentinel are found by the simulation
#: make sim              simulation of servers in a network; ARGS="--seeds 1000000" for hours
#: make modules          the example modules of utils/hello_module/ and those of tests, into build/modules/
#: make cluster-proof    clusters of real processes that fail at random (tests/proofs/README.md); ARGS="mixed --count 50"
#: make test-modules     modules of others, fetched from the registries; ARGS="--peer /path/to/valkey-server"
#: make durability       proofs that nothing acknowledged is lost; ARGS=--long for hours
#: make bench            the micro benchmarks of tests/bench/
#: make bench-report     this server beside PEER=/path/to/valkey-server, into docs/benchmarks.md; ARGS=--quick only prints
#: make bench-gate       cost of requests and keys, compared with the budgets and with BASE (a git ref)
#: make screens          what the programs and the status page show, into docs/screens.md
#: make docs             the documentation as static HTML, into build/docs
#: make deb, tarball, rpm packages in build/package/: for this Debian; for any Linux, or RPM system, with glibc 2.28 or later
#: make image            a container image without docker, in build/package/: docker load, podman load
#: make install          programs, man pages, completion, systemd units; PREFIX=/usr/local DESTDIR=
#: make format           clang-format-14 over src/ and tests/
#: make clean            remove build/ and the programs
#:
#: BUILD=release|debug|asan|tsan|hostile  MALLOC=jemalloc|libc  BUILD_TLS=no  BUILD_LZ4=no
#: BUILD_ZSTD=no  CC=gcc|clang-14  V=1 (show commands)
#: WERROR= (warnings do not stop)  HARDEN= LTO= MARCH= (replace these flags)  CFLAGS= LDFLAGS= (add)

# ---- variables set by the user ------------------------------------------------------------------

BUILD ?= release
PREFIX ?= /usr/local
DESTDIR ?=
V ?=
WERROR ?= -Werror
FUZZ_SECONDS ?= 300
FUZZ_CC ?= $(if $(shell command -v clang-14),clang-14,clang)
ARGS ?=
ifeq ($(origin CC),default)
CC := gcc
endif

profiles := release debug asan tsan hostile fuzz
ifeq ($(filter $(BUILD),$(profiles)),)
$(error BUILD=$(BUILD): choose one of $(profiles))
endif
# The sanitizers have their own allocator, which detects more errors.
MALLOC ?= $(if $(filter release debug,$(BUILD)),jemalloc,libc)
ifeq ($(filter $(MALLOC),jemalloc libc),)
$(error MALLOC=$(MALLOC): choose jemalloc or libc)
endif

# Use all processors, unless -jN is given or this is a recursive make.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
MAKEFLAGS += --no-builtin-rules
Q := $(if $(V),,@)
say = $(if $(V),:,printf '  %-6s %s\n' $(1) $(2))

# ---- dependencies and layers -----------------------------------------------------------------------------

# TARGET=arm64 (tests/arm64.sh): objects and libraries' flags of a cross build in a folder of its own.
TARGET ?=
build_dir := build$(if $(TARGET),/$(TARGET))
out := $(build_dir)/$(BUILD)
tools_goals := run quick test test-long test-arm64 check docs clean format help
# Targets that only run other programs must work before the libraries are installed.
real_goals := $(filter-out $(tools_goals),$(or $(MAKECMDGOALS),all))
ifneq ($(real_goals),)
include $(build_dir)/deps.mk build/layers.mk
not_used := $(if $(filter libc,$(MALLOC)),jemalloc) $(if $(filter no,$(BUILD_TLS)),libssl) \
            $(if $(filter no,$(BUILD_LZ4)),lz4) $(if $(filter no,$(BUILD_ZSTD)),zstd)
missing := $(filter-out $(not_used),$(deps_missing))
ifneq ($(missing),)
$(shell rm -f $(build_dir)/deps.mk)
$(error missing: $(missing). Run deps/install.sh, or install by hand: $(deps_hint))
endif
endif

$(build_dir)/deps.mk: deps/deps.txt deps/probe.sh
	@mkdir -p $(@D)
	@deps/probe.sh > $@.new && mv $@.new $@

# below_<folder>: the folder and all layers below it. A row refers only to earlier rows.
build/layers.mk: src/layers.txt
	@mkdir -p $(@D)
	@awk -F: '/^[a-z]+ *:/ { gsub(/ /, "", $$1); n = split($$2, row, " "); all = all " " $$1; \
	    split("", seen); text = ""; \
	    for (i = 1; i <= n; i++) { m = split(below[row[i]], deep, " "); \
	        for (j = 1; j <= m; j++) if (!(deep[j] in seen)) { seen[deep[j]]; text = text " " deep[j] } } \
	    below[$$1] = text " " $$1; print "below_" $$1 " :=" below[$$1] } \
	    END { print "folders :=" all }' $< > $@.new && mv $@.new $@

# A folder's generated tables are apart from what people edit.
sources_of = $(foreach folder,$(1),$(wildcard src/$(folder)/*.c src/$(folder)/generated/*.c))
objects_of = $(patsubst src/%.c,$(out)/%.o,$(call sources_of,$(1))) $(if $(filter metrics,$(1)),$(out)/metrics/page_html.o)
# The folders a test program needs: those whose headers it includes, and the layers below them.
seen_by = $(shell $(CC) -MM -Isrc -Isrc/clientlib $(1) | tr ' ' '\n' | sed -n 's,^src/\([a-z]*\)/.*,\1,p' | sort -u)
included_by = $(sort $(foreach folder,$(call seen_by,$(1)),$(below_$(folder))))

# Per program: folders to link, own files. Programs without own files are not built.
programs := valkey-server valkey-cli valkey-benchmark valkey-check-rdb valkey-check-aof
server_folders := $(filter-out tools server,$(folders))
valkey-server_folders := $(server_folders)
valkey-server_own := $(if $(wildcard src/server/main.c),$(call sources_of,server))
valkey-cli_folders := base ds io resp store format clientlib
client_tool := $(addprefix src/tools/,server_uri.c similar.c tls.c)
valkey-cli_own := $(call sources_of,tools/cli tools/backup) src/tools/size_histogram.c $(client_tool)
valkey-benchmark_folders := base ds io resp clientlib
valkey-benchmark_own := $(wildcard src/tools/benchmark/*.c) src/tools/tool.c $(client_tool)
valkey-check-rdb_folders := base ds io resp store format
check_tool := $(addprefix src/tools/,progress.c rdb_check.c rdb_stats.c size_histogram.c tool.c)
valkey-check-rdb_own := src/tools/check_rdb.c $(check_tool)
valkey-check-aof_folders := base ds io resp store format
valkey-check-aof_own := src/tools/check_aof.c src/tools/aof_check.c $(check_tool)
present := $(foreach program,$(programs),$(if $($(program)_own),$(program)))

# ---- flags -------------------------------------------------------------------------------------

is_clang := $(findstring clang,$(CC))
# Tests, once per set of flags, if the compiler can link a program with the flags in $(1).
can_link = $(shell echo 'int main(void){return 0;}' | $(CC) $(1) -x c -o /dev/null - >/dev/null 2>&1 && echo yes)

warnings := -Wall -Wextra $(WERROR) -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings \
            $(if $(is_clang),,-Wshadow=local)
sanitize := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
checks := -DHOT_CHECKS
# HARDEN= (empty) omits them, to measure their cost.
HARDEN ?= -fstack-protector-strong -D_FORTIFY_SOURCE=2

profile_release := -O3 $(HARDEN)
profile_debug := -O0 $(checks)
profile_asan := -O1 $(checks) $(sanitize)
profile_tsan := -O1 $(checks) -fsanitize=thread -fno-omit-frame-pointer
profile_hostile := -O1 $(checks) $(sanitize) -DHOSTILE_BUILD
# Tiny limits, so that short inputs reach all boundaries of the parsers.
profile_fuzz := -O2 -DHOSTILE_BUILD -DREQUEST_INLINE_MAX=100 $(if $(FUZZ_PLAIN),,$(checks) $(sanitize))

ifneq ($(real_goals),)
ifeq ($(BUILD),release)
LTO ?= $(if $(is_clang),$(if $(call can_link,-flto=thin),-flto=thin),$(if $(call can_link,-flto=auto),-flto=auto))
endif
ifeq ($(shell uname -m),x86_64)
MARCH ?= -march=x86-64-v2
endif
endif

deps_used := $(filter-out $(not_used),$(deps_libraries))
# Paths are mapped so that the build is reproducible in any directory.
cc_flags := -std=gnu11 -g $(warnings) $(profile_$(BUILD)) $(LTO) $(MARCH) -Isrc -Isrc/clientlib -pthread \
            -ffile-prefix-map=$(CURDIR)=. $(if $(filter jemalloc,$(MALLOC)),-DUSE_JEMALLOC) \
            $(if $(filter no,$(BUILD_TLS)),,-DHAVE_TLS) \
            $(if $(filter no,$(BUILD_LZ4)),,-DHAVE_LZ4) $(if $(filter no,$(BUILD_ZSTD)),,-DHAVE_ZSTD) \
            $(if $(filter fuzz,$(BUILD)),-fsanitize=fuzzer-no-link) \
            $(foreach dep,$(deps_used),$($(dep)_CFLAGS)) $(CPPFLAGS) $(CFLAGS)
# Test groups export functions without a header, and cmocka passes a state to every test.
test_flags := -Wno-missing-prototypes -Wno-unused-parameter
# Libraries that only one program needs.
valkey-cli_libs := $(libedit_LIBS)
link_libs := $(foreach dep,$(filter-out libedit,$(deps_used)),$($(dep)_LIBS)) -lm -ldl -pthread
# Warnings of link-time optimisation depend on heuristics, so they are not errors.
link = $(CC) $(cc_flags) -Wno-error -Wl,--dynamic-list=src/module/exported.list -Wl,-z,relro,-z,now $(LDFLAGS) -o $@

# ---- targets -------------------------------------------------------------------------------------

.PHONY: all first build objects lib run quick test test-long test-arm64 check c-tests c-test fuzzers fuzz benches bench durability durability-programs sim sim-faults cluster-proof quorum-proof test-modules modules gate bench-gate bench-report trial screens docs install deb image tarball rpm clean format help FORCE
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

# Puts programs of this profile into src/.
put = for program in $(1); do cmp -s $(out)/$$program src/$$program || \
    { cp $(out)/$$program src/$$program.new && mv src/$$program.new src/$$program; } || exit 1; done
all: build lib
	@$(call put,$(present))
	@if [ -f $(out)/valkey-server ]; then ln -f src/valkey-server src/valkey-sentinel && \
	    ln -f $(out)/valkey-server $(out)/valkey-sentinel; fi
	@$(if $(present),:,echo 'nothing to link yet: src/server/main.c is missing')

# What `make run` needs.
first: $(out)/valkey-server $(out)/valkey-cli
	@$(call put,valkey-server valkey-cli)

# Builds in build/<profile>/ only.
build: objects $(present:%=$(out)/%) modules
objects: $(call objects_of,$(folders) tools/cli tools/backup tools/benchmark)

run:
	@deps/install.sh build
	@utils/build_progress.sh $(MAKE) --no-print-directory first
	@exec src/valkey-server $$(test -f valkey.conf && echo valkey.conf) $(ARGS)

test:
	+@deps/install.sh test && MAKE='$(MAKE)' tests/all.sh

quick:
	+@deps/install.sh test && MAKE='$(MAKE)' BASE='$(BASE)' tests/quick.sh

test-long:
	+@deps/install.sh long && MAKE='$(MAKE)' tests/long.sh

test-arm64:
	+@MAKE='$(MAKE)' tests/arm64.sh

# Checks of the source; see utils/.
check:
	+@MAKE='$(MAKE)' utils/check.sh

screens: build
	@utils/screens.py src

docs:
	@utils/gen_html.py build/docs

clean:
	rm -rf build tests/tmp $(programs:%=src/%) src/valkey-sentinel

format:
	utils/check_format.sh --fix

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

# ---- compiling and linking ---------------------------------------------------------------------

# Rewritten only when compiler or flags change; all objects depend on it. Objects do not depend on the path of the
# tree, which only the map of paths contains: a tree that was moved, or copied by cp -a, is not built anew.
$(out)/flags: FORCE
	@mkdir -p $(@D)
	@new='$(CC) $(shell $(CC) -dumpversion) $(cc_flags) $(LDFLAGS) $(link_libs)'; \
	    without_path() { sed 's,-ffile-prefix-map=[^ ]*,,' "$$@" 2>/dev/null; }; \
	    [ -f $@ ] && [ "$$(echo "$$new" | without_path)" = "$$(without_path $@)" ] || echo "$$new" > $@

$(out)/%.o: src/%.c $(out)/flags
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$(Q)$(CC) $(cc_flags) $(if $(is_clang),,-frandom-seed=$<) -MMD -MP -c -o $@ $<

$(out)/tests/%.o: tests/%.c $(out)/flags
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$(Q)$(CC) $(cc_flags) $(test_flags) -MMD -MP -c -o $@ $<

# Identifies the source: rewritten only when the commit or the state of src/ changes; no date, no host.
# Two makes may do it at the same time.
$(out)/build_info.c: FORCE
	@mkdir -p $(@D)
	@deps/build_info.sh > $@.$$$$; cmp -s $@.$$$$ $@ && rm $@.$$$$ || mv $@.$$$$ $@
$(out)/build_info.o: $(out)/build_info.c $(out)/flags
	$(Q)$(CC) $(cc_flags) -MMD -MP -c -o $@ $<

# The status page as an array of bytes.
$(out)/metrics/page_html.c: src/metrics/page.html deps/embed.sh
	@mkdir -p $(@D)
	@deps/embed.sh $< metrics/metrics_priv.h metricsPage metricsPageSize > $@.new && mv $@.new $@
$(out)/metrics/page_html.o: $(out)/metrics/page_html.c $(out)/flags
	$(Q)$(CC) $(cc_flags) -MMD -MP -c -o $@ $<

define program_rule
$(out)/$(1): $(call objects_of,$($(1)_folders)) $($(1)_own:src/%.c=$(out)/%.o) $(out)/build_info.o
	@$$(call say,LINK,$$@)
	$$(Q)$$(link) $$(filter %.o,$$^) $$($(1)_libs) $$(link_libs)
endef
$(foreach program,$(present),$(eval $(call program_rule,$(program))))

# The same objects linked for other machines, in $(out)/portable/: libraries inside where there is a static one, and
# only functions of glibc 2.28 (utils/package/old_glibc.py).
portable_dir := $(out)/portable
portable_link = $(link) -static-libgcc -L$(portable_dir)/glibc $(shell cat $(portable_dir)/glibc/options) -Wl,-rpath,'$$ORIGIN/../lib' -Wl,--exclude-libs,ALL
static = $(foreach lib,$(1),$(if $(filter -l%,$(lib)),$(shell file=$$($(CC) -print-file-name=lib$(lib:-l%=%).a); [ -f "$$file" ] && echo "$$file" || echo $(lib)),$(lib)))
# Static libraries need each other: their order does not matter in a group.
portable_libs = -Wl,--start-group $(call static,$(filter-out -lm -ldl,$(1))) -Wl,--end-group -lm -ldl
$(portable_dir)/glibc/options: utils/package/old_glibc.py utils/package/old_glibc.c $(out)/flags
	$(Q)utils/package/old_glibc.py $(@D) $(CC)
define portable_rule
$(portable_dir)/$(1): $(out)/$(1) $(portable_dir)/glibc/options
	@$$(call say,LINK,$$@)
	$$(Q)$$(portable_link) $$(call objects_of,$$($(1)_folders)) $$($(1)_own:src/%.c=$(out)/%.o) $(out)/build_info.o \
	    $$(call portable_libs,$$(if $$($(1)_libs),$$(libedit_static)) $$(link_libs))
endef
$(foreach program,$(present),$(eval $(call portable_rule,$(program))))
libedit_static = $(libedit_LIBS) $(filter-out -ltermcap,$(shell pkg-config --static --libs libedit 2>/dev/null)) -lmd -ltinfo

# ---- the client library ------------------------------------------------------------------------

# libvalkey and libvalkey_tls: objects of their own, without link-time optimisation, which other compilers
# could not read, and with only the public functions visible.
lib_version := $(shell awk '/define LIBVALKEY_VERSION_M/ { v = v "." $$3 } /VERSION_PATCH/ { print substr(v, 2) "." $$3 }' src/clientlib/valkey/valkey.h)
lib_so := so.0
lib_flags = $(filter-out -flto%,$(cc_flags)) -fPIC -fvisibility=hidden
libs := libvalkey $(if $(filter no,$(BUILD_TLS)),,$(if $(wildcard src/clientlib/tls.c),libvalkey_tls))
libvalkey_own := $(filter-out src/clientlib/tls.c,$(call sources_of,clientlib))
libvalkey_tls_own := $(wildcard src/clientlib/tls.c)
libvalkey_tls_link = -L$(out) -lvalkey $(libssl_LIBS) $(libcrypto_LIBS)
lib_files := $(foreach lib,$(libs),$(out)/$(lib).a $(out)/$(lib).$(lib_so) $(out)/$(lib).pc)

$(out)/pic/%.o: src/%.c $(out)/flags
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$(Q)$(CC) $(lib_flags) -MMD -MP -c -o $@ $<
define lib_rule
$(out)/$(1).a: $(patsubst src/%.c,$(out)/pic/%.o,$($(1)_own))
	@$$(call say,AR,$$@)
	@rm -f $$@
	$$(Q)ar rcs $$@ $$^
$(out)/$(1).$(lib_so): $(patsubst src/%.c,$(out)/pic/%.o,$($(1)_own)) $(if $(filter-out libvalkey,$(1)),$(out)/libvalkey.$(lib_so))
	@$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(lib_flags) $$(LDFLAGS) -shared -Wl,-soname,$(1).$(lib_so) -Wl,-z,relro,-z,now -o $$@ $$(filter %.o,$$^) $$($(1)_link) -lm
	@ln -sf $(1).$(lib_so) $(out)/$(1).so
$(out)/$(1).pc: src/clientlib/$(1).pc.in Makefile
	@sed 's,@VERSION@,$(lib_version),' $$< > $$@
endef
$(foreach lib,$(libs),$(eval $(call lib_rule,$(lib))))
lib: $(lib_files)

# ---- C tests, fuzzers, benchmarks --------------------------------------------------------------

c_folders := $(patsubst tests/c/%/main.c,%,$(wildcard tests/c/*/main.c))
# Programs have a main() each, so of tools/ only the parts under test are linked: valkey-cli without its own.
tested_tools := $(patsubst src/%.c,$(out)/%.o,$(filter-out %/main.c,$(valkey-cli_own)))
define c_test_rule
$(out)/tests/c/$(1)/run: $(patsubst %.c,$(out)/%.o,$(wildcard tests/c/$(1)/*.c)) $(if $(filter tools,$(1)),$(tested_tools)) $(call objects_of,$(filter-out tools,$(below_$(1)))) $(out)/build_info.o
	@$$(call say,LINK,$$@)
	$$(Q)$$(link) $$(filter %.o,$$^) -lcmocka $(if $(filter tools,$(1)),$$(valkey-cli_libs)) $$(link_libs)
endef
$(foreach folder,$(c_folders),$(eval $(call c_test_rule,$(folder))))
# sim runs state machines of several servers over a simulated network (tests/sim/main.c). Built with the C tests,
# so that it follows every change of them.
sim_program := $(out)/tests/sim/sim
sim_machines := $(patsubst src/%.c,%,$(wildcard src/bus/*.c src/psync/*.c src/monitor/*.c)) sentinel/lines
$(sim_program): $(patsubst %.c,$(out)/%.o,$(wildcard tests/sim/*.c)) $(sim_machines:%=$(out)/%.o) \
                $(call objects_of,base ds resp io config) $(out)/build_info.o
	@$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(link_libs)
# The same with faults that are switched on one by one, in changed copies of the machines (tests/sim/faults.py).
sim_faulty := $(out)/tests/sim/faulty
sim_changed := $(filter bus/% monitor/% sentinel/% psync/birth psync/link psync/primary psync/quorum,$(sim_machines))
$(out)/faults/%.c: src/%.c tests/sim/faults.py
	@mkdir -p $(@D)
	@tests/sim/faults.py --write $*.c > $@
$(sim_changed:%=$(out)/faults/%.o): %.o: %.c $(out)/flags
	$(Q)$(CC) $(cc_flags) -Wno-parentheses -MMD -MP -c -o $@ $<
$(sim_faulty): $(patsubst %.c,$(out)/%.o,$(wildcard tests/sim/*.c)) $(sim_changed:%=$(out)/faults/%.o) \
               $(filter-out $(sim_changed:%=$(out)/%.o),$(sim_machines:%=$(out)/%.o)) \
               $(call objects_of,base ds resp io config) $(out)/build_info.o
	@$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(link_libs)
sim: $(sim_program)
	@$< $(ARGS)
sim-faults: $(sim_faulty)
	@tests/sim/faults.py $(ARGS) $<
# A program per adapter of the client library: of those whose library is installed, and of those that run on a stand-in.
# Libraries that were not built for it confuse ThreadSanitizer.
adapter_libraries := libevent libev libuv glib ivykis libsdevent $(if $(shell command -v $(CXX) 2>/dev/null),qt)
adapters_here := $(if $(TARGET)$(filter tsan,$(BUILD)),,ae libhv macosx valkeymoduleapi \
                 $(filter $(adapter_libraries),$(deps_extra)))
adapters_missing := $(filter-out $(adapters_here),$(adapter_libraries))
adapter_programs := $(adapters_here:%=$(out)/tests/c/adapters/run_%)
define adapter_rule
$(out)/tests/c/adapters/adapter_$(1).o: test_flags += -Itests/c/adapters/standin $($(1)_CFLAGS)
$(out)/tests/c/adapters/run_$(1): $(addprefix $(out)/tests/c/,adapters/adapter_$(1).o adapters/adapter_test.o clientlib/client_test.o) $(call objects_of,$(below_clientlib))
	@$$(call say,LINK,$$@)
	$$(Q)$$(link) $$(filter %.o,$$^) -lcmocka $($(1)_LIBS) $(if $(filter qt,$(1)),-lstdc++) $$(link_libs)
endef
$(foreach adapter,$(adapters_here),$(eval $(call adapter_rule,$(adapter))))
$(out)/tests/c/adapters/%.o: tests/c/adapters/%.cc $(out)/flags
	@mkdir -p $(@D)
	@$(call say,CXX,$<)
	$(Q)$(CXX) $(filter-out -std=% -Wstrict-prototypes -Wmissing-prototypes -flto% $(MARCH),$(cc_flags)) -std=c++17 -fPIC $(filter-out -Wno-missing-prototypes,$(test_flags)) -MMD -MP -c -o $@ $<

c-tests: $(c_folders:%=$(out)/tests/c/%/run) $(sim_program) $(adapter_programs)
# FOLDER=ds runs those of one folder.
c-test: $(foreach folder,$(or $(FOLDER),$(c_folders)),$(out)/tests/c/$(folder)/run) $(if $(filter clientlib,$(or $(FOLDER),clientlib)),$(adapter_programs))
	@$(if $(and $(filter clientlib,$(or $(FOLDER),clientlib)),$(adapters_missing)),echo 'adapters without their library are skipped: $(adapters_missing)')
	@tests/c/run.sh $^

define program_of_one_file
$(out)/$(1): $(out)/$(1).o $(call objects_of,$(call included_by,$(1).c)) $(out)/build_info.o
	@$$(call say,LINK,$$@)
	$$(Q)$$(link) $(2) $$(filter %.o,$$^) $$(link_libs)
endef
fuzz_sources := $(if $(filter fuzz fuzzers,$(real_goals)),$(wildcard tests/fuzz/fuzz_*.c))
$(foreach source,$(fuzz_sources),$(eval $(call program_of_one_file,$(source:.c=),-fsanitize=fuzzer)))
fuzzers: $(fuzz_sources:%.c=$(out)/%)

fuzz:
	+@$(MAKE) --no-print-directory BUILD=fuzz CC=$(FUZZ_CC) fuzzers
	@tests/fuzz/run.sh $(FUZZ_SECONDS) $(fuzz_sources:%.c=build/fuzz/%)

bench_sources := $(if $(filter bench benches,$(real_goals)),$(wildcard tests/bench/bench_*.c))
$(foreach source,$(bench_sources),$(eval $(call program_of_one_file,$(source:.c=),)))
benches: $(bench_sources:%.c=$(out)/%)
bench: benches
	@for program in $(bench_sources:%.c=$(out)/%); do echo "== $$program"; $$program || exit 1; done

# gate is the whole server with a driver instead of its event loop (tests/bench/gate.c); load is a load generator, floor
# the least that a server can cost.
gate_program := $(out)/tests/bench/gate
$(out)/tests/bench/server_main.o: src/server/main.c $(out)/flags Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(cc_flags) $(test_flags) -Dmain=serverMain -DloopRun=gateLoop -DcronStart=gateCronStart -DnetListen=gateListen \
	    -MMD -MP -c -o $@ $<
$(gate_program): $(out)/tests/bench/gate.o $(out)/tests/bench/server_main.o $(call objects_of,$(server_folders)) \
                 $(filter-out $(out)/server/main.o,$(valkey-server_own:src/%.c=$(out)/%.o)) $(out)/build_info.o
	@$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(link_libs)
# rings is the whole server with an I/O thread whose clients need no sockets (tests/bench/rings.c).
rings_program := $(out)/tests/bench/rings
$(out)/tests/bench/rings_main.o: src/server/main.c $(out)/flags Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(cc_flags) $(test_flags) -Dmain=serverMain -DloopRun=ringsLoop -MMD -MP -c -o $@ $<
$(rings_program): $(out)/tests/bench/rings.o $(out)/tests/bench/rings_main.o $(call objects_of,$(server_folders)) \
                  $(filter-out $(out)/server/main.o,$(valkey-server_own:src/%.c=$(out)/%.o)) $(out)/build_info.o
	@$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(link_libs)
rings: $(rings_program)
load_programs := $(out)/tests/bench/load $(out)/tests/bench/floor
$(load_programs): %: %.o
	@$(call say,LINK,$@)
	$(Q)$(link) $^ -lm
gate: $(gate_program) $(load_programs)

# The whole server with a subsystem that is added while it runs (tests/trial/trial.c).
trial_program := $(out)/tests/trial/valkey-server
$(trial_program): $(out)/tests/trial/trial.o $(call objects_of,$(server_folders)) \
                  $(valkey-server_own:src/%.c=$(out)/%.o) $(out)/build_info.o
	@$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(link_libs)
trial: $(trial_program)

# loader is the whole server with a driver that loads append only files; shim.so stands between a server and its files.
loader_program := $(out)/tests/durability/loader
$(out)/tests/durability/server_main.o: src/server/main.c $(out)/flags Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(cc_flags) $(test_flags) -Dmain=serverMain -DloopRun=loaderLoop -DcronStart=loaderCronStart \
	    -DnetListen=loaderListen -MMD -MP -c -o $@ $<
$(loader_program): $(out)/tests/durability/loader.o $(out)/tests/durability/server_main.o $(call objects_of,$(server_folders)) \
                 $(filter-out $(out)/server/main.o,$(valkey-server_own:src/%.c=$(out)/%.o)) $(out)/build_info.o
	@$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(link_libs)
$(out)/tests/durability/shim.so: tests/durability/shim.c
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$(Q)$(CC) -O1 -Wall -Wextra $(WERROR) -shared -fPIC -o $@ $< -ldl -pthread
durability-programs: $(loader_program) $(out)/tests/durability/shim.so

# Kills servers, cuts their power, makes their disks fail: nothing that was acknowledged may be lost.
durability:
	+@$(MAKE) --no-print-directory build durability-programs
	@tests/durability/run.py $(out) $(ARGS)

# Example modules, and those of tests. They are linked to nothing, so they do not depend on the build of the server.
module_objects := $(patsubst %.c,build/modules/%.so,$(notdir $(wildcard utils/hello_module/*.c tests/modules/*.c)))
build_module = @mkdir -p $(@D); $(call say,CC,$<); $(CC) -O2 -Wall -Wextra $(WERROR) -shared -fPIC -pthread -Isrc/module -o $@ $<
build/modules/%.so: utils/hello_module/%.c src/module/valkeymodule.h
	$(build_module)
build/modules/%.so: tests/modules/%.c src/module/valkeymodule.h $(wildcard tests/modules/*.h)
	$(build_module)
modules: $(module_objects)

# Clusters of real processes, in network namespaces.
test-modules:
	+@$(MAKE) --no-print-directory BUILD=release build
	@tests/proofs/other_modules.py --server build/release/valkey-server $(ARGS)

# The clocks of servers are moved by clock.so.
clock_shim := $(out)/tests/proofs/clock.so
$(clock_shim): tests/proofs/clock.c
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$(Q)$(CC) -O1 -Wall -Wextra $(WERROR) -shared -fPIC -o $@ $<
quorum-proof:
	+@$(MAKE) --no-print-directory BUILD=release build build/release/tests/proofs/clock.so
	@tests/proofs/quorum.py $(ARGS)

cluster-proof:
	+@$(MAKE) --no-print-directory BUILD=release build
	@tests/proofs/cluster.py $(or $(ARGS),mixed)

bench-report:
	+@$(MAKE) --no-print-directory BUILD=release build/release/valkey-server build/release/tests/bench/load
	@tests/bench/report.py $(PEER) $(ARGS)

bench-gate:
	+@$(MAKE) --no-print-directory gate
	@tests/bench/gate.py budgets
	@tests/bench/gate.py compare $(BASE)

# ---- install -----------------------------------------------------------------------------------

bin := $(DESTDIR)$(PREFIX)/bin
share := $(DESTDIR)$(PREFIX)/share
lib := $(DESTDIR)$(PREFIX)/lib
include := $(DESTDIR)$(PREFIX)/include
to := install -D -m 644
install: all
	install -d $(bin)
	$(if $(present),install -m 755 $(present:%=src/%) $(bin))
	$(if $(filter valkey-server,$(present)),ln -f $(bin)/valkey-server $(bin)/valkey-sentinel)
	for program in $(present) $(if $(filter valkey-server,$(present)),valkey-sentinel); do \
	    ln -sf $$program $(bin)/redis-$${program#valkey-} || exit 1; done
	for file in $(wildcard valkey.conf sentinel.conf); do $(to) $$file $(share)/valkey/$$file || exit 1; done
	for page in $(wildcard docs/man/*.[1-8]); do \
	    $(to) $$page $(share)/man/man$${page##*.}/$${page##*/} || exit 1; done
	for name in server cli benchmark; do \
	    $(to) utils/completion/valkey-$$name.bash $(share)/bash-completion/completions/valkey-$$name && \
	    ln -sf valkey-$$name $(share)/bash-completion/completions/redis-$$name && \
	    $(to) utils/completion/_valkey-$$name $(share)/zsh/site-functions/_valkey-$$name || exit 1; done
	$(to) utils/systemd/valkey.sysusers $(lib)/sysusers.d/valkey.conf
	for lib in $(libs); do \
	    $(to) $(out)/$$lib.a $(lib)/$$lib.a && $(to) $(out)/$$lib.$(lib_so) $(lib)/$$lib.so.$(lib_version) && \
	    ln -sf $$lib.so.$(lib_version) $(lib)/$$lib.$(lib_so) && ln -sf $$lib.$(lib_so) $(lib)/$$lib.so && \
	    $(to) $(out)/$$lib.pc $(lib)/pkgconfig/$$lib.pc && \
	    sed -i 's,@PREFIX@,$(PREFIX),' $(lib)/pkgconfig/$$lib.pc || exit 1; done
	for header in $(patsubst src/clientlib/%,%,$(wildcard src/clientlib/valkey/*.h src/clientlib/valkey/adapters/*.h)); do \
	    $(to) src/clientlib/$$header $(include)/$$header || exit 1; done
	for header in valkeymodule.h redismodule.h; do $(to) src/module/$$header $(include)/$$header || exit 1; done
	for unit in $(notdir $(wildcard utils/systemd/*.service utils/systemd/*.timer)); do \
	    $(to) utils/systemd/$$unit $(lib)/systemd/system/$$unit && \
	    sed -i 's,/usr/local/bin/,$(PREFIX)/bin/,' $(lib)/systemd/system/$$unit || exit 1; done

# A Debian package and a container image; a tarball and an RPM for other systems; in build/package/.
package_stage = build/package/stage-$@
package_libraries = $(call static,$(filter-out -lm -ldl -pthread,$(libedit_static) $(link_libs)))
# Of a library without a static one, the file that the linker takes.
library_files = $(foreach lib,$(1),$(if $(filter -l%,$(lib)),$(shell $(CC) -print-file-name=lib$(lib:-l%=%).so),$(lib)))
deb image: all
	rm -rf $(package_stage)
	+@$(MAKE) install PREFIX=/usr DESTDIR=$(CURDIR)/$(package_stage)
	@utils/package/package.sh $@ $(package_stage) build/package
	@rm -rf $(package_stage)
tarball rpm: all $(present:%=$(portable_dir)/%)
	rm -rf $(package_stage)
	+@$(MAKE) install PREFIX=/usr DESTDIR=$(CURDIR)/$(package_stage)
	@rm -f $(package_stage)/usr/bin/valkey-*
	install -m 755 $(present:%=$(portable_dir)/%) $(package_stage)/usr/bin
	ln -f $(package_stage)/usr/bin/valkey-server $(package_stage)/usr/bin/valkey-sentinel
	@utils/package/package.sh $@ $(package_stage) build/package $(call library_files,$(package_libraries))
	@rm -rf $(package_stage)

-include $(shell test -d $(out) && find $(out) -name '*.d')
