# SPDX-License-Identifier: BSD-3-Clause
#
# Settings of modules, and functions that they offer to each other (tests/modules/settings.c, sharing.c).

set path [file normalize build/modules/settings.so]
set load_error {ERR Error loading the extension. Please check the server logs.}

proc setting {name} {lindex [r config get settings.$name] 1}

start_server {overrides {enable-module-command yes}} {
    test {defaults, and CONFIG GET by name and pattern} {
        r module load $path
        foreach {name value} {greeting hello on yes colour green bits none number 5 memory 1024 unlimited -1 large 1 fixed no} {
            assert_equal $value [setting $name] $name
        }
        assert_equal 18 [llength [r config get settings.*]]
        assert_equal {SETTINGS.Number 5} [r config get SETTINGS.Number]
    }

    test {CONFIG SET of each kind; values of the module's own function} {
        lassign [r settings.calls] sets applies
        r config set settings.greeting {good day} settings.on no settings.colour BLUE settings.number 7
        assert_equal {{good day} no blue 7} [list [setting greeting] [setting on] [setting colour] [setting number]]
        assert_equal [list [expr {$sets + 4}] [expr {$applies + 4}]] [r settings.calls]
        r config set settings.number 7 settings.colour blue
        assert_equal [list [expr {$sets + 4}] [expr {$applies + 4}]] [r settings.calls]
        r config set settings.bits {read write} settings.memory 2mb settings.large 18446744073709551615
        assert_equal {{read write} 2097152 18446744073709551615} [list [setting bits] [setting memory] [setting large]]
        r config set settings.bits none
        assert_equal none [setting bits]
    }

    test {bits print the word of exactly their value, else words that share no bit} {
        foreach {given printed} {update update {update change} update {read update} {update read} {read change} {read change}
            {write read} {read write} none none {read read} read} {
            r config set settings.bits $given
            assert_equal $printed [setting bits] $given
        }
        r config set settings.bits none
    }

    test {a number that is no memory size is refused as that} {
        foreach value {-5 -1mb 1.5mb x} {
            assert_error {*argument must be a memory value} {r config set settings.memory $value}
        }
        assert_error {*argument must be between*} {r config set settings.memory 200gb}
    }

    test {values that do not fit, or that the module refuses, change nothing} {
        foreach {name value text} {
            on maybe {argument must be 'yes' or 'no'} colour pink {argument(s) must be one of the following: red, green, blue}
            number 101 {argument must be between -10 and 100 inclusive} number x {argument couldn't be parsed into an integer}
            number 5k {argument couldn't be parsed into an integer} large -1 {argument couldn't be parsed as an unsigned number}
            number 13 {not thirteen} greeting bad {no bad greetings} fixed yes {can't set immutable config}
        } {
            set before [r config get settings.*]
            assert_error "ERR CONFIG SET failed (possibly related to argument 'settings.$name') - $text" \
                {r config set settings.memory 4096 settings.$name $value}
            assert_equal $before [r config get settings.*] $name
        }
    }

    test {a refused CONFIG SET gives the module the former values again, in the order of the request} {
        r config set settings.memory 1024 settings.colour green settings.large 1 settings.bits none settings.number 7 settings.on yes
        foreach {pairs calls} {
            {memory 4096 colour red large 5 bits read greeting bad}
            {memory=4096 colour=1 large=5 bits=1 greeting=bad memory=1024 colour=2 large=1 bits=0}
            {memory 4096 number 13 on no} {memory=4096 number=13 memory=1024}
            {memory 4096 number 101} {memory=4096 memory=1024}
            {number 7 colour green greeting bad} {greeting=bad}
            {memory 4096 number 14 on no} {memory=4096 number=14 memory=1024 number=7}
        } {
            r settings.trace
            set words {}
            foreach {name value} $pairs {lappend words settings.$name $value}
            assert_error {ERR CONFIG SET failed *} {r config set {*}$words}
            assert_equal $calls [string trim [r settings.trace]]
        }
    }

    test {what cannot be applied is applied again with the former values, in the order of the request} {
        foreach {pairs calls} {
            {memory 4096 number 99 on no} {memory=4096 number=99 on=0 apply memory=1024 number=7 on=1 apply apply}
            {on no number 99} {on=0 number=99 apply apply on=1 number=7 apply apply}
            {number 99} {number=99 apply number=7 apply}
        } {
            r settings.trace
            set words {}
            foreach {name value} $pairs {lappend words settings.$name $value}
            assert_error {ERR CONFIG SET failed (possibly related to argument 'settings.number') - cannot be applied} \
                {r config set {*}$words}
            assert_equal $calls [string trim [r settings.trace]]
        }
    }

    test {MODULE LOADEX gives first values} {
        r module unload settings
        assert_equal {} [r config get settings.*]
        r module loadex $path config settings.number 8 config settings.number 9 config settings.greeting {a b} args
        assert_equal {9 {a b}} [list [setting number] [setting greeting]]
        r module unload settings
        assert_error $load_error {r module loadex $path config settings.number x}
        assert_match "*Issue during loading of configuration settings.number : argument couldn't be parsed into an integer*" [server_log]
        assert_error $load_error {r module loadex $path config settings.nothing 1}
        assert_match "*Loadex configurations were not applied, likely due to invalid arguments. Unloading the module.*" [server_log]
        assert_error $load_error {r module loadex $path config settings.number}
        assert_match "*CONFIG specified without name value pair*" [server_log]
        assert_error $load_error {r module loadex $path other}
        assert_match "*Syntax Error from arguments to loadex around other.*" [server_log]
        assert_equal {} [r config get settings.*]
    }

    test {what is wrong at the load is refused, and leaves no setting} {
        foreach {word text} {twice {Configuration by the name: on already registered} name {Invalid character   in Module resource name two words.}
            unloaded {Module Configurations were not set, likely a missing LoadConfigs call. Unloading the module.}} {
            assert_error $load_error {r module load $path $word}
            assert_match "*$text*" [server_log]
        }
        assert_equal {} [r config get settings.*]
        r module load $path
        assert_equal EBUSY [r settings.late new]
    }

    test {a module uses a function of another one, which cannot be unloaded meanwhile} {
        r module load [file normalize build/modules/sharing.so]
        assert_equal 42 [r sharing.twice 21]
        assert_match "*name=settings,*usedby=\\\[sharing\\\],using=\\\[\\\],*" [r info modules]
        assert_match "*name=sharing,*usedby=\\\[\\\],using=\\\[settings\\\],*" [r info modules]
        assert_error {ERR Error unloading module: the module exports APIs used by other modules. Please unload them first and try again} \
            {r module unload settings}
        r module unload sharing
        assert_equal OK [r module unload settings]
        r module load [file normalize build/modules/sharing.so]
        assert_equal {} [r sharing.twice 21]
    }
}

set rewritten $::job_dir/rewritten.conf
start_server [list tags tls:skip overrides [list settings.number 77 loadmodule [list $path] settings.greeting {good morning} \
    enable-module-command yes]] {
    test {values of the file, before and after loadmodule; CONFIG REWRITE keeps them} {
        assert_equal {77 {good morning}} [list [setting number] [setting greeting]]
        r config set settings.number 78 settings.memory 3mb settings.bits {read write}
        r config rewrite
        set text [file_text [srv config]]
        foreach line [list "loadmodule $path" "settings.number 78" "settings.memory 3mb" "settings.bits read write" \
            "settings.greeting \"good morning\""] {
            assert_match "*\n$line\n*" $text
        }
        assert_equal 0 [string match "*settings.colour*" $text]
        set file [open $rewritten w]
        puts $file [regsub -all -line {^(port|dir|enable-module-command) .*$} $text {}]
        close $file
    }
    start_server [list args [list --include $rewritten]] {
        test {a server started with the rewritten file has the same settings} {
            assert_equal {78 {good morning} 3145728 {read write}} [list [setting number] [setting greeting] [setting memory] [setting bits]]
        }
    }
}

start_server [list tags tls:skip overrides [list port [free_port] loadmodule [list $path] settings.number 77 enable-module-command yes]] {
    test {CONFIG REWRITE after MODULE UNLOAD leaves comments, and the server starts again} {
        r module unload settings
        r config rewrite
        set text [file_text [srv config]]
        assert_match "*\n# \\?\\?\\? settings.number 77\n*" $text
        assert {![regexp -line {^loadmodule} $text]}
        restart_with_file
        r config rewrite
        assert_equal $text [file_text [srv config]]
    }
}
