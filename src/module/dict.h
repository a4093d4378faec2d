/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dictionaries that modules create (api_dict.c). Main thread only. */
#ifndef MODULE_DICT_H
#define MODULE_DICT_H

/* Before the first one is made. */
void dictsStart(void);

#endif
