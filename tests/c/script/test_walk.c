/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The walk that proves the sandbox: it finds tables of the server wherever a script could get them,
 * and nothing in a new interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "engine/lifecycle.h"
#include "script/lua_priv.h"

#ifdef HOT_CHECKS
static void identify(engineIdentity *out) {
    *out = (engineIdentity){
        .version = "1.2.3", .mode = "standalone", .role = "master", .availability_zone = ""};
}

static int setup(void **state) {
    clockInit();
    engineSetIdentityProc(identify);
    *state = luaEngine.open(&luaEngine, SCRIPT_USE_EVAL);
    return 0;
}

static int teardown(void **state) {
    luaEngine.close(*state);
    return 0;
}

/* Pushes the real table of the globals. */
static void pushHost(luaVm *vm) { lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->globals); }

static void nothing_is_found_in_a_new_interpreter(void **state) {
    luaVm *vm = *state;
    uint64_t digest = luaHostDigest(vm);
    assert_null(luaWalk(vm));
    assert_int_equal(luaHostDigest(vm), digest);
}

static void a_table_of_the_host_is_found_as_value_key_upvalue_and_environment(void **state) {
    luaVm *vm = *state;
    lua_State *L = vm->L;
    for (int where = 0; where < 6; where++) {
        lua_newtable(L);
        switch (where) {
        case 0: pushHost(vm); break;
        case 1:
            pushHost(vm);
            lua_pushboolean(L, 1);
            lua_rawset(L, -3);
            break;
        case 2:
            pushHost(vm);
            lua_rawseti(L, -2, 1);
            break;
        case 3:
            pushHost(vm);
            lua_pushcclosure(L, luaErrorHandler, 1);
            break;
        case 4:
            pushHost(vm);
            lua_setmetatable(L, -2);
            break;
        default: {
            lua_State *co = lua_newthread(L);
            pushHost(vm);
            lua_xmove(L, co, 1);
        }
        }
        assert_non_null(luaWalk(vm));
        lua_settop(L, 0);
        assert_null(luaWalk(vm));
    }
}

static void a_changed_table_of_the_host_has_another_digest(void **state) {
    luaVm *vm = *state;
    lua_State *L = vm->L;
    uint64_t digest = luaHostDigest(vm);
    pushHost(vm);
    lua_pushliteral(L, "planted");
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    assert_int_not_equal(luaHostDigest(vm), digest);
    lua_pushliteral(L, "planted");
    lua_pushnil(L);
    lua_rawset(L, -3);
    lua_settop(L, 0);
    assert_int_equal(luaHostDigest(vm), digest);
}

int test_walk(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_found_in_a_new_interpreter, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_table_of_the_host_is_found_as_value_key_upvalue_and_environment, setup, teardown),
        cmocka_unit_test_setup_teardown(a_changed_table_of_the_host_has_another_digest, setup,
                                        teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int test_walk(void) { return 0; }
#endif
