# SPDX-License-Identifier: BSD-3-Clause
#
# What a module does wrong is an error or a line in the log, and the server goes on (tests/modules/misuse.c).

start_server {overrides {enable-module-command yes}} {
    r module load [file normalize build/modules/misuse.so]

    test {a reply whose length was never said becomes an error} {
        assert_error {ERR the reply of the module has no end} {r misuse.open}
        assert_match "*API misuse detected in module misuse: *not matched by the same number*" [server_log]
        r multi
        r misuse.open
        r echo after
        assert_equal {{ERR the reply of the module has no end} after} [r exec]
        assert_equal PONG [r ping]
    }

    test {the length of a container that was not begun is ignored} {
        assert_equal OK [r misuse.close]
        assert_match "*ReplySet\\*Length() called without previous*" [server_log]
    }

    test {calls that fail give NULL and errno} {
        assert_equal ESPIPE [r misuse.scriptmode]
        assert_equal EBADF [r misuse.format]
    }

    test {calls nest up to a limit} {
        assert_equal OK [r misuse.nested 50]
        assert_equal ELOOP [r misuse.nested 1000]
        assert_equal OK [r misuse.nested 50]
    }

    test {a string that others hold is not appended to} {
        assert_equal {1 abc} [r misuse.append abc]
    }

    test {CallReplyProto() and others of a reply or a key that is NULL tell nothing} {
        assert_equal OK [r misuse.null]
    }

    test {unloading leaves nothing} {
        assert_equal OK [r module unload misuse]
        assert_error {ERR unknown command*} {r misuse.open}
    }
}
