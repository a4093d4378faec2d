# SPDX-License-Identifier: BSD-3-Clause
#
# For tests of the command line programs. Sourced by those tests.

# Runs a program that is beside the server, with `input` as standard input; returns {exit status, output with errors}.
proc run_tool {name input args} {
    set tool [file join [file dirname $::binary] $name]
    set status [catch {exec $tool {*}$args << $input 2>@1} output options]
    if {$status} {
        set code [dict get $options -errorcode]
        if {[lindex $code 0] ne "CHILDSTATUS"} {fail "$name ended by $code: $output"}
        set status [lindex $code 2]
        regsub {\nchild process exited abnormally$} $output {} output
    }
    return [list $status $output]
}
