/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder of the sockets: made when it is not there, and removed by the last dataplane
 * that leaves it.
 *
 * When several dataplanes start together, one makes the folder, and another may get the
 * socket, or have a socket of its own in the folder: the maker is often not the last to leave.
 * So the maker leaves a marker file in the folder, and each dataplane that leaves looks, with its
 * own files gone, whether only the marker is left. A folder without a marker, which a
 * person or systemd made, stays.
 */
#ifndef URNICD_FOLDER_H
#define URNICD_FOLDER_H

#include "pmd_glue/port.h"

#include <stdbool.h>

/*
 * Make the folder that `socket` lies in, one level, unless the folder is there.
 * @param shared  for all users to enter (mode 0755, whatever the umask is), else for its owner alone
 * @param made    set to true when this call made the folder, else unchanged
 * @return 0, or -1 with *err
 */
int nicd_folder_make(const char *socket, bool shared, bool *made, struct urn_err *err);
/*
 * Remove the folder that `socket` lies in, if a dataplane of this user made it and nothing is left
 * in it. To be called when the caller's own files in the folder are gone.
 * @param made  set by nicd_folder_make(); counts where the marker could not be written
 */
void nicd_folder_leave(const char *socket, bool made);
/* True when `socket` lies in a folder that does not exist (any more). */
bool nicd_folder_gone(const char *socket);

#endif
