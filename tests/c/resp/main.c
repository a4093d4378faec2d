/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tests of resp/. */
int test_outbuf(void);
int test_reply_read(void);
int test_reply_write(void);
int test_request(void);

int main(void) {
    int failures = 0;
    failures += test_request();
    failures += test_outbuf();
    failures += test_reply_write();
    failures += test_reply_read();
    return failures != 0;
}
