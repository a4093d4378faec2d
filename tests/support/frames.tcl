# SPDX-License-Identifier: BSD-3-Clause
#
# Compressed streams of replication made by hand: their frames have only blocks that are stored as they are.
#
#   frame_begin codec     head and begin of the frame
#   frame_block codec bytes   the next block
#   frame_codecs          those that the current server has
#   built_codecs          those of the binary that is tested, before there is a server

proc frame_codecs {} {
    set codecs [split [info_field compression_codecs] ,]
    if {$codecs eq "none"} {return {}}
    return $codecs
}

proc built_codecs {} {
    set codecs [regsub {.*compression=(\S+).*} [exec $::binary --version] {\1}]
    return [expr {$codecs eq "none" ? {} : [split $codecs ,]}]
}

proc frame_begin {codec} {
    if {$codec eq "lz4"} {return [binary format H* 5643530101000204224d18604082]}
    return [binary format H* 5643530102000228b52ffd0058]
}

proc frame_block {codec bytes} {
    if {$codec eq "lz4"} {return "[binary format i [expr {[string length $bytes] | 0x80000000}]]$bytes"}
    return "[string range [binary format i [expr {[string length $bytes] << 3}]] 0 2]$bytes"
}
