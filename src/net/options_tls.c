/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of TLS. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "net/net_priv.h"
#include "net/tls.h"

static const configWord auth_words[] = {
    {"no", TLS_AUTH_NO}, {"yes", TLS_AUTH_YES}, {"optional", TLS_AUTH_OPTIONAL}, {NULL, 0}};
static const configWord user_words[] = {
    {"CN", TLS_USER_CN}, {"URI", TLS_USER_URI}, {"off", TLS_USER_OFF}, {NULL, 0}};

const configOption netTlsOptions[] = {
    CONFIG_INT("tls-port", netConf.tls_port, 0, 0, CONFIG_PORT_MAX, .apply = netApplyTlsPort),
    CONFIG_BOOL("tls-replication", netConf.tls_replication, false, .flags = CONFIG_APPLY_AT_START,
                .apply = netTlsApply),
    CONFIG_BOOL("tls-cluster", netConf.tls_cluster, false, .apply = netTlsApply),
    CONFIG_BOOL("tls-check-hostname", netConf.tls_check_hostname, false),
    CONFIG_STRING("tls-cert-file", netConf.tls_cert_file, "", .flags = CONFIG_APPLY_ALWAYS,
                  .apply = netTlsApply),
    CONFIG_STRING("tls-key-file", netConf.tls_key_file, "", .flags = CONFIG_APPLY_ALWAYS,
                  .apply = netTlsApply),
    CONFIG_STRING("tls-key-file-pass", netConf.tls_key_file_pass, "", .flags = CONFIG_SENSITIVE,
                  .apply = netTlsApply),
    CONFIG_STRING("tls-alt-cert-file", netConf.tls_alt_cert_file, "", .flags = CONFIG_APPLY_ALWAYS,
                  .apply = netTlsApply),
    CONFIG_STRING("tls-alt-key-file", netConf.tls_alt_key_file, "", .flags = CONFIG_APPLY_ALWAYS,
                  .apply = netTlsApply),
    CONFIG_STRING("tls-alt-key-file-pass", netConf.tls_alt_key_file_pass, "",
                  .flags = CONFIG_SENSITIVE, .apply = netTlsApply),
    CONFIG_STRING("tls-client-cert-file", netConf.tls_client_cert_file, "",
                  .flags = CONFIG_APPLY_ALWAYS, .apply = netTlsApply),
    CONFIG_STRING("tls-client-key-file", netConf.tls_client_key_file, "",
                  .flags = CONFIG_APPLY_ALWAYS, .apply = netTlsApply),
    CONFIG_STRING("tls-client-key-file-pass", netConf.tls_client_key_file_pass, "",
                  .flags = CONFIG_SENSITIVE, .apply = netTlsApply),
    CONFIG_STRING("tls-dh-params-file", netConf.tls_dh_params_file, "",
                  .flags = CONFIG_APPLY_ALWAYS, .apply = netTlsApply),
    CONFIG_STRING("tls-ca-cert-file", netConf.tls_ca_cert_file, "", .flags = CONFIG_APPLY_ALWAYS,
                  .apply = netTlsApply),
    CONFIG_STRING("tls-ca-cert-dir", netConf.tls_ca_cert_dir, "", .flags = CONFIG_APPLY_ALWAYS,
                  .apply = netTlsApply),
    CONFIG_ENUM("tls-auth-clients", netConf.tls_auth_clients, auth_words, TLS_AUTH_YES,
                .apply = netTlsApplyAuth),
    CONFIG_ENUM("tls-auth-clients-user", netConf.tls_auth_clients_user, user_words, TLS_USER_OFF),
    CONFIG_STRING("tls-protocols", netConf.tls_protocols, "", .apply = netTlsApply),
    CONFIG_STRING("tls-ciphers", netConf.tls_ciphers, "", .apply = netTlsApply),
    CONFIG_STRING("tls-ciphersuites", netConf.tls_ciphersuites, "", .apply = netTlsApply),
    CONFIG_BOOL("tls-prefer-server-ciphers", netConf.tls_prefer_server_ciphers, false,
                .apply = netTlsApply),
    CONFIG_BOOL("tls-session-caching", netConf.tls_session_caching, true, .apply = netTlsApply),
    CONFIG_INT("tls-session-cache-size", netConf.tls_session_cache_size, 20480, 0, INT_MAX,
               .apply = netTlsApply),
    CONFIG_INT("tls-session-cache-timeout", netConf.tls_session_cache_timeout, 300, 0, INT_MAX,
               .apply = netTlsApply),
    CONFIG_INT("tls-auto-reload-interval", netConf.tls_auto_reload_interval, 0, 0, INT_MAX),
    CONFIG_END,
};
