# Geo commands: success, refusals in their order, both forms an index is kept in, searches against plain formulas. What
# they propagate: helpers/compare_propagation.py.

proc typed {args} {r -typed {*}$args}
proc null {} {expr {[resp3] ? {null null} : {null bulk}}}

# Thresholds that make sorted sets of some members this form.
proc force {form} {r config set zset-max-listpack-entries [expr {$form eq "listpack" ? 5000 : 0}]}
proc usual {} {r config set zset-max-listpack-entries 128}

proc sicily {} {
    r del sicily s
    r geoadd sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
    r geoadd sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2
    r set s text
}

proc radians {degrees} {expr {$degrees * acos(-1) / 180}}
# Metres between two places.
proc metres {lon1 lat1 lon2 lat2} {
    foreach name {lon1 lat1 lon2 lat2} {set $name [radians [set $name]]}
    set a [expr {sin(($lat2 - $lat1) / 2) ** 2 + cos($lat1) * cos($lat2) * sin(($lon2 - $lon1) / 2) ** 2}]
    expr {2 * 6372797.560856 * asin(sqrt($a > 1 ? 1 : $a))}
}
proc within {min max} {expr {$min + rand() * ($max - $min)}}

# Whether two lists hold the same, but for the doubtful.
proc assert_members {expected found doubtful} {
    foreach member $doubtful {
        set expected [lsearch -all -inline -not -exact $expected $member]
        set found [lsearch -all -inline -not -exact $found $member]
    }
    assert_equal [lsort $expected] [lsort $found]
}

set unit_error "ERR unsupported unit provided. please use M, KM, FT, MI"

start_server {tags {geo}} {
    test {geo commands refuse too few arguments} {
        foreach {command arguments} {
            geoadd {k 1 1}                geopos {}                 geohash {}
            geodist {k a}                 geosearch {k frommember a byradius 1}
            geosearchstore {d k frommember a byradius 1}            georadius {k 1 1 1}
            georadius_ro {k 1 1 1}        georadiusbymember {k a 1} georadiusbymember_ro {k a 1}
        } {assert_error "ERR wrong number of arguments for '$command' command" {r $command {*}$arguments}}
    }

    test {geo commands refuse other types and leave the key alone} {
        sicily
        foreach command {
            {geoadd s 1 1 a} {geopos s a} {geohash s a} {geodist s a b}
            {geosearch s frommember a byradius x km foo} {geosearch s fromlonlat 500 1 byradius 1 km}
            {geosearchstore d s frommember a byradius 1 km withdist} {georadius s 500 1 1 km}
            {georadius_ro s 1 1 -1 km} {georadiusbymember s a x km} {georadiusbymember_ro s a 1 km foo}
        } {assert_error "WRONGTYPE *" {r {*}$command}}
        assert_equal text [r get s]
        assert_equal 0 [r exists d]
    }

    test {GEOADD judges everything before it changes anything} {
        r del k
        foreach {arguments error} {
            {1 1 a 2} "ERR syntax error"
            {nx xx 1 1 a} "ERR syntax error"
            {gt 1 1 a} "ERR syntax error"
            {incr 1 1 a} "ERR syntax error"
            {nx ch ch} "ERR syntax error"
            {x 1 a} "ERR value is not a valid float"
            {1 nan a} "ERR value is not a valid float"
            {1 0x1 a} "ERR value is not a valid float"
            {181 0 a} "ERR invalid longitude,latitude pair 181.000000,0.000000"
            {0 -86 a} "ERR invalid longitude,latitude pair 0.000000,-86.000000"
            {inf 0 a} "ERR invalid longitude,latitude pair inf,0.000000"
            {1 1 a 200 0 b} "ERR invalid longitude,latitude pair 200.000000,0.000000"
            {1 1 a x 0 b} "ERR value is not a valid float"
        } {assert_error $error {r geoadd k {*}$arguments}}
        assert_equal 0 [r exists k]
    }

    test {GEOADD with every option} {
        r del k
        assert_equal 0 [r geoadd k xx 1 1 a]
        assert_equal 0 [r exists k]
        assert_equal 2 [r geoadd k 1 1 a 2 2 b]
        assert_equal 0 [r geoadd k nx 5 5 a]
        assert_equal 1 [r geoadd k NX 5 5 a 3 3 c]
        assert_equal 0 [r geoadd k xx 5 5 a 6 6 new]
        assert_equal 2 [r geoadd k ch 7 7 a 8 8 new 3 3 c]
        assert_equal 1 [r geoadd k xx ch Ch 1 1 a 9 9 newer]
        assert_equal {a b c new} [r zrange k 0 -1]
        r geoadd k 13.361389 38.115556 Palermo
        assert_equal 3479099956230698 [expr {entier([r zscore k Palermo])}]
    }

    test {positions, texts and distances are those of every server} {
        sicily
        assert_equal {{13.36138933897018433 38.11555639549629859} {15.08726745843887329 37.50266842333162032}} \
            [r geopos sicily Palermo Catania]
        assert_equal [expr {[resp3] ? {double 13.36138933897018433} : {bulk 13.36138933897018433}}] \
            [lindex [typed geopos sicily Palermo] 1 0 1 0]
        assert_equal {{} {12.7584877610206604 38.78813451624225195}} [r geopos sicily nope edge1]
        assert_equal {{} {}} [r geopos none a b]
        assert_equal {} [r geopos sicily]
        assert_equal {sqc8b49rny0 sqdtr74hyu0 {}} [r geohash sicily Palermo Catania nope]
        assert_equal {{}} [r geohash none a]
        foreach {unit distance} {m 166274.1516 km 166.2742 FT 545518.8700 mi 103.3182} {
            assert_equal [list bulk $distance] [typed geodist sicily Palermo Catania $unit]
        }
        assert_equal 166274.1516 [r geodist sicily Catania Palermo]
        assert_equal 0.0000 [r geodist sicily Palermo Palermo]
        foreach {key a b} {sicily Palermo nope sicily nope Palermo none a b} {
            assert_equal [null] [typed geodist $key $a $b]
        }
        assert_error $unit_error {r geodist none a b parsec}
        assert_error "ERR syntax error" {r geodist none a b parsec m}
    }

    test {the edges of the map} {
        r del k
        r geoadd k 180 85.05112878 high -180 -85.05112878 low
        assert_equal {{180 85.0511287799999991} {-179.99999731779098511 -85.05112751263942528}} [r geopos k high low]
        assert_equal {bp05b5048p0 00bh0hbj200} [r geohash k high low]
        r del k
        r zadd k 1e300 huge -5 negative 1.5 part -inf least
        assert_equal {-179.99999731779098511 -85.05112751263942528} [lindex [r geopos k huge] 0]
        assert_equal {180 85.0511287799999991} [lindex [r geopos k negative] 0]
        assert_equal {-179.99999731779098511 -85.05112497791824921} [lindex [r geopos k part] 0]
        assert_equal {180 -85.05112751263942528} [lindex [r geopos k least] 0]
    }

    test {GEOSEARCH with every option} {
        sicily
        assert_equal {Palermo Catania} [r geosearch sicily fromlonlat 15 37 byradius 200 km]
        assert_equal {Catania Palermo} [r geosearch sicily asc fromlonlat 15 37 byradius 200 km]
        assert_equal {Palermo Catania} [r geosearch sicily byradius 200 km desc fromlonlat 15 37]
        assert_equal {Catania Palermo edge2 edge1} [r geosearch sicily fromlonlat 15 37 bybox 400 400 km asc]
        assert_equal Catania [r geosearch sicily fromlonlat 15 37 bybox 400 400 km count 1]
        assert_equal edge1 [r geosearch sicily fromlonlat 15 37 bybox 400 400 km count 1 desc]
        assert_equal {Catania Palermo} [r geosearch sicily fromlonlat 15 37 bybox 400 400 km count 1 count 2 desc asc]
        assert_equal Palermo [r geosearch sicily fromlonlat 15 37 byradius 200 km any count 1]
        assert_equal {Palermo edge1 Catania} [r geosearch sicily frommember Palermo byradius 200 km]
        assert_equal {{Palermo 190.4424} {Catania 56.4413}} \
            [r geosearch sicily fromlonlat 15 37 byradius 200 km withdist]
        assert_equal {{Catania 56.4413 3479447370796909 {15.08726745843887329 37.50266842333162032}}} \
            [r geosearch sicily withcoord fromlonlat 15 37 byradius 60 km withhash withdist]
        assert_equal [expr {[resp3] ? {double 15.08726745843887329} : {bulk 15.08726745843887329}}] \
            [lindex [typed geosearch sicily fromlonlat 15 37 byradius 60 km withcoord] 1 0 1 1 1 0]
        assert_equal {bulk 56.4413} [lindex [typed geosearch sicily fromlonlat 15 37 byradius 60 km withdist] 1 0 1 1]
        assert_equal {} [r geosearch sicily fromlonlat 15 37 byradius 0 km]
        assert_equal 4 [llength [r geosearch sicily fromlonlat 15 37 byradius inf km]]
        assert_equal 4 [llength [r geosearch sicily fromlonlat 15 37 bybox 1e300 inf ft]]
        # The last of two words of a kind counts.
        assert_equal Palermo [r geosearch sicily fromlonlat 1 1 byradius 1 m fromlonlat 13.3 38.1 byradius 10 km]
        assert_equal edge1 [r geosearch sicily frommember Palermo frommember edge1 byradius 10 km]
    }

    test {GEOSEARCH BYPOLYGON measures from the middle of the vertices} {
        r del k
        r geoadd k 3 4 a 5 5 b 1 1 c 9 9 d 11 5 out
        assert_equal {{c 630189.6284} {a 249045.8648} {b 2113.5207} {d 625279.2220}} \
            [r geosearch k bypolygon 4 0 0 0 10 10 10 10 0 withdist]
        assert_equal {{c 557073.8201} {a 158069.8587} {b 111429.8040} {d 708065.5432}} \
            [r geosearch k withdist bypolygon 5 0 0 0 5 0 10 10 10 10 0]
        assert_equal {b a} [r geosearch k bypolygon 4 0 0 10 0 10 10 0 10 count 2]
        # A notch is not within.
        assert_equal {c a} [r geosearch k bypolygon 5 0 0 10 0 10 10 5 4.5 0 10 desc]
        assert_equal {} [r geosearch none bypolygon 3 0 0 0 10 10 10]
    }

    test {GEOSEARCH refuses invalid arguments} {
        sicily
        set center "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for"
        set shape "ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for"
        foreach {arguments error} [list \
            {frommember nope byradius x km} "ERR member nope does not exist" \
            {frommember Palermo byradius x parsec} "ERR need numeric radius" \
            {frommember Palermo byradius -1 parsec} "ERR radius cannot be negative" \
            {frommember Palermo byradius 1 parsec} $unit_error \
            {frommember Palermo bybox x y parsec} "ERR need numeric width" \
            {frommember Palermo bybox -1 y parsec} "ERR need numeric height" \
            {frommember Palermo bybox 1 -1 parsec} "ERR height or width cannot be negative" \
            {frommember Palermo bybox 1 1 parsec} $unit_error \
            {fromlonlat 15 x byradius 1 km} "ERR value is not a valid float" \
            {fromlonlat 15 99 byradius x km} "ERR invalid longitude,latitude pair 15.000000,99.000000" \
            {frommember Palermo fromlonlat 1 1 byradius 1 km} "ERR syntax error" \
            {frommember Palermo byradius 1 km bybox 1 1 km} "ERR syntax error" \
            {frommember Palermo bypolygon x 1 2 3 4} "ERR syntax error" \
            {bypolygon 3 0 0 0 9 9 9 frommember Palermo} "ERR syntax error" \
            {bypolygon x 0 0 0 9 9 9} "ERR invalid number of vertices" \
            {bypolygon 2147483648 0 0 0 9} "ERR invalid number of vertices" \
            {bypolygon 2147483647 0 0 0 9} "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices" \
            {bypolygon -3 0 0 0 9 9 9} "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices" \
            {bypolygon 4 0 0 0 9 9 9} "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices" \
            {bypolygon 3 0 0 0 9 9 x} "ERR value is not a valid float" \
            {bypolygon 3 0 0 0 9 9 90} "ERR invalid longitude,latitude pair 9.000000,90.000000" \
            {asc asc asc asc bypolygon 3} "ERR syntax error" \
            {frommember Palermo byradius 1 km count 0} "ERR COUNT must be > 0" \
            {frommember Palermo byradius 1 km count x} "ERR value is not an integer or out of range" \
            {frommember Palermo byradius 1 km count} "ERR syntax error" \
            {frommember Palermo byradius 1 km any} "ERR the ANY argument requires COUNT argument" \
            {frommember Palermo byradius 1 km store d} "ERR syntax error" \
            {frommember Palermo byradius 1 km storedist} "ERR syntax error" \
            {byradius 1 km any asc asc} "$center geosearch" \
            {frommember Palermo any asc asc} "$shape geosearch" \
        ] {assert_error $error {r geosearch sicily {*}$arguments}}
        # An index that is not there has no members to miss, but the words are read.
        assert_equal {} [r geosearch none frommember nope byradius 1 km]
        assert_error "ERR need numeric radius" {r geosearch none frommember nope byradius x km}
        foreach {arguments error} [list \
            {fromlonlat 1 1 any asc withcoord} \
                "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options" \
            {asc byradius 1 km any} "$center geosearchstore" {fromlonlat 1 1 any asc} "$shape geosearchstore" \
            {fromlonlat 1 1 byradius 1 km store x} "ERR syntax error" \
        ] {assert_error $error {r geosearchstore d none {*}$arguments}}
    }

    test {GEOSEARCHSTORE stores cells or distances} {
        sicily
        r set d text
        assert_equal 2 [r geosearchstore d sicily fromlonlat 15 37 byradius 200 km]
        assert_equal {3479099956230698 3479447370796909} [lmap score [r zmscore d Palermo Catania] {expr {entier($score)}}]
        assert_equal 4 [r geosearchstore d sicily fromlonlat 15 37 byradius 200 mi storedist]
        assert_equal {35.071058862737644 118.33573380874013} [r zmscore d Catania Palermo]
        assert_equal 1 [r geosearchstore d sicily fromlonlat 15 37 byradius 200 mi count 1]
        assert_equal Catania [r zrange d 0 -1]
        assert_equal 2 [r geosearchstore sicily sicily fromlonlat 15 37 byradius 200 km storedist]
        assert_equal {56.4412578701582 190.44242984775784} [r zmscore sicily Catania Palermo]
        assert_equal 0 [r geosearchstore d none frommember nope byradius 1 km]
        assert_equal 0 [r exists d]
    }

    test {GEORADIUS and its kin read and refuse as GEOSEARCH does} {
        sicily
        foreach suffix {"" _ro} {
            assert_equal {Palermo Catania} [r georadius$suffix sicily 15 37 200 km]
            assert_equal {{Catania 56.4413}} [r georadius$suffix sicily 15 37 200 km withdist count 1]
            assert_equal {Palermo edge1 Catania} [r georadiusbymember$suffix sicily Palermo 200 km]
            assert_equal {Palermo edge1} [r georadiusbymember$suffix sicily Palermo 200 km asc count 2]
            assert_equal {} [r georadius$suffix none 15 37 200 km]
            assert_equal {} [r georadiusbymember$suffix none nope x km]
            foreach {arguments error} [list {15 x x km} "ERR value is not a valid float" \
                {15 99 x km} "ERR invalid longitude,latitude pair 15.000000,99.000000" \
                {15 37 x km} "ERR need numeric radius" {15 37 -1 km} "ERR radius cannot be negative" \
                {15 37 1 parsec} $unit_error {15 37 1 km byradius 1 km} "ERR syntax error" \
                {15 37 1 km count -1} "ERR COUNT must be > 0" \
                {15 37 1 km any} "ERR the ANY argument requires COUNT argument" \
            ] {assert_error $error {r georadius$suffix none {*}$arguments}}
            assert_error "ERR member nope does not exist" {r georadiusbymember$suffix sicily nope x km}
            assert_error "ERR syntax error" {r georadiusbymember$suffix none nope x km foo}
        }
        assert_error "ERR syntax error" {r georadius_ro sicily 15 37 200 km store d}
        assert_error "ERR syntax error" {r georadiusbymember_ro sicily Palermo 200 km storedist d}
        assert_equal 0 [r exists d]
    }

    test {GEORADIUS stores at the last key named} {
        sicily
        r del d d2
        assert_equal 2 [r georadius sicily 15 37 200 km store d]
        assert_equal 3479099956230698 [expr {entier([r zscore d Palermo])}]
        assert_equal 2 [r georadius sicily 15 37 200 km store d storedist d2]
        assert_equal {56.4412578701582 190.44242984775784} [r zmscore d2 Catania Palermo]
        assert_equal 3 [r georadiusbymember sicily Palermo 200 km storedist d2 store d]
        assert_equal 2 [r zcard d2]
        assert_equal 3 [r zcard d]
        assert_error "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options" \
            {r georadius none 15 37 200 km store d withhash}
        assert_error "ERR syntax error" {r georadius sicily 15 37 200 km store}
        assert_equal 0 [r georadius none 15 37 200 km store d]
        assert_equal 0 [r exists d]
        assert_equal {sicily d2} [r command getkeys georadius sicily 15 37 200 km store d storedist d2]
        assert_equal {sicily d} [r command getkeys georadiusbymember sicily store 200 km store d]
        assert_equal sicily [r command getkeys georadius sicily 15 37 store km store]
    }

    foreach form {listpack skiplist} {
        test "searches find what lies within, nearest first ($form)" {
            force $form
            r del k
            set arguments {}
            for {set i 0} {$i < 400} {incr i} {
                # Some members are numbers, which an index may keep as such.
                lappend arguments [within -60 60] [within -60 60] [expr {$i % 2 ? $i : "m$i"}]
            }
            r geoadd k {*}$arguments
            assert_equal $form [r object encoding k]
            set members [r zrange k 0 -1]
            set places [r geopos k {*}$members]
            for {set round 0} {$round < [scaled 40]} {incr round} {
                set lon [within -50 50]
                set lat [within -50 50]
                set radius [expr {10 ** [within 5 6.6]}]
                set width [expr {10 ** [within 5 6.6]}]
                set near {}
                set inside {}
                set doubtful {}
                foreach member $members place $places {
                    lassign $place member_lon member_lat
                    set far [metres $lon $lat $member_lon $member_lat]
                    set up [expr {6372797.560856 * abs([radians [expr {$member_lat - $lat}]])}]
                    set aside [metres $lon $member_lat $member_lon $member_lat]
                    if {$far <= $radius} {lappend near [list $far $member]}
                    if {$up <= $radius && $aside <= $width} {lappend inside $member}
                    foreach {a b} [list $far $radius $up $radius $aside $width] {
                        if {abs($a - $b) < $b * 1e-9} {lappend doubtful $member}
                    }
                }
                set near [lmap pair [lsort -real -index 0 $near] {lindex $pair 1}]
                assert_members $near [r geosearch k fromlonlat $lon $lat byradius $radius m] $doubtful
                assert_members $inside [r geosearch k fromlonlat $lon $lat bybox [expr {2 * $width}] [expr {2 * $radius}] m] \
                    $doubtful
                if {$doubtful ne ""} continue
                assert_equal $near [r geosearch k fromlonlat $lon $lat byradius $radius m asc]
                assert_equal [lreverse $near] [r geosearch k fromlonlat $lon $lat byradius $radius m desc]
                assert_equal [lrange $near 0 6] [r geosearch k fromlonlat $lon $lat byradius $radius m count 7]
                assert_equal [lrange [lreverse $near] 0 6] \
                    [r geosearch k fromlonlat $lon $lat byradius $radius m count 7 desc]
                set any [r geosearch k fromlonlat $lon $lat byradius $radius m count 7 any asc]
                assert_equal [expr {min(7, [llength $near])}] [llength $any]
                foreach member $any {assert {$member in $near}}
                assert_equal $any [lmap member $near {expr {$member in $any ? $member : [continue]}}]
                assert_equal [llength $near] [r geosearchstore d k fromlonlat $lon $lat byradius $radius m storedist]
                assert_equal $near [r zrange d 0 -1]
            }
            usual
        }
    }
}
