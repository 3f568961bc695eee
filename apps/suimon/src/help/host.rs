//! Help of commands about the host as a whole: state, configuration, events, operations, power.

use crate::help::entry::{Help, read_only_command, state_changing_command};

pub(super) const HELP: &[Help] = &[
    read_only_command(
        "host",
        "The host is the machine on which the daemon `suimond` runs.",
        &["suimon host show"],
    ),
    read_only_command(
        "host show",
        "Prints name, version and uptime of the daemon, the revision of desired state (a number \
         that increases with each change), the number of objects of each kind, whether the host \
         is drained, and the confinement of the daemon's threads.",
        &["suimon host show", "suimon host show --json"],
    ),
    read_only_command(
        "apply",
        "The file describes the whole desired state: objects that it does not name are deleted, \
         and keys that it does not set get their defaults. Image files of deleted disks stay. \
         The file is checked completely before anything changes; if a step fails, the previous \
         state is restored. Only objects that differ are changed. A step marked `~` closes \
         nothing: traffic continues, except if the description of the key in \
         docs/reference/config.md names an interruption, such as a negotiation of LACP or a reset \
         of an adapter. `±` replaces an object, which interrupts \
         its own traffic, `+` adds and `-` deletes one.\n\n\
         Running VMs continue. Keys of a VM that cannot change while it runs take effect at its \
         next start.\n\n\
         The desired state is stored and survives restarts of the daemon and of the host. The \
         daemon does not change the file: commands such as `suimon nic set` change the desired \
         state only, and the next `apply` reverts these changes. `suimon export` prints the \
         desired state as a host file.",
        &[
            "suimon apply --file /etc/suimon/host.toml --dry-run",
            "suimon apply --file /etc/suimon/host.toml",
        ],
    ),
    read_only_command(
        "export",
        "Prints the desired state, with all changes by commands, as TOML text that `suimon \
         apply` accepts; with `--json` as JSON. The text contains the MAC addresses that were \
         assigned to NICs without `mac`, and the paths of key and password files, not their \
         contents. Comments, order and formatting of the applied host file are not part of the \
         desired state and are lost. Keys with default values are omitted. \
         Keep the commented host file, or compare both before you replace it.\n\n\
         `--output FILE` replaces the file in one step, and only if the export succeeds. `suimon \
         export >FILE` would empty the file first.",
        &["suimon export", "suimon export --output /etc/suimon/host.toml", "suimon export --json"],
    ),
    read_only_command(
        "check",
        "Checks syntax, keys, ranges and references. Errors are printed with file and line, and \
         the exit code is 3. Devices, paths and capacities of the host are not examined: `suimon \
         apply --dry-run` does that. With `--json`, prints the parsed file with all defaults.",
        &["suimon check --file /etc/suimon/host.toml"],
    ),
    read_only_command(
        "top",
        "On a terminal, shows rates until `q`, Esc or Ctrl-C is pressed; the arrow keys scroll. \
         Otherwise, or with `--once` or `--json`, prints the rates of one interval and exits. \
         IOPS of disks in the columns GUARANTEED, DEMAND and DELIVERED are means of 5 s. \
         docs/reference/status.md defines all columns.",
        &["suimon top", "suimon top --once --interval 5000", "suimon top --stages"],
    ),
    read_only_command(
        "metrics",
        "Prints what `GET /metrics` returns to Prometheus. docs/reference/metrics.md defines the \
         metrics and the alert rules.",
        &["suimon metrics"],
    ),
    read_only_command(
        "completions",
        "Prints the script on standard output. The shell reads it at its start from a directory \
         such as /etc/bash_completion.d or /usr/share/zsh/site-functions.",
        &["suimon completions bash", "suimon completions zsh"],
    ),
    read_only_command(
        "man",
        "Without `--dir`, prints the page of `suimon` itself in roff format. With `--dir`, writes \
         one page per command, such as suimon-nic-add.1.",
        &["suimon man", "suimon man --dir /usr/local/share/man/man1"],
    ),
    read_only_command(
        "openapi",
        "Prints the OpenAPI 3.1 document with the types, ranges, defaults and examples of all \
         requests, for generators of API clients.",
        &["suimon openapi"],
    ),
    read_only_command(
        "console",
        "The web console is served by the daemon at the address of the key `listen` in \
         `[console]` of the host file, on the loopback interface only.",
        &["suimon console login"],
    ),
    read_only_command(
        "console login",
        "The printed URL logs in one browser and is valid for 1 min. Open it on the host. From \
         another machine, open a tunnel first, such as `ssh -L 7446:127.0.0.1:7446 HOST`.",
        &["suimon console login"],
    ),
    read_only_command(
        "lab",
        "Runs the program `suimon-lab`, which is in the directory of `suimon` or in `PATH`, with \
         the given arguments. `suimon lab --help` lists its commands. An experiment runs in a \
         daemon and network namespaces of its own and does not change the daemon of the host. Its \
         load on CPUs and disks slows down running VMs.",
        &["suimon lab list", "suimon lab show disk-io"],
    ),
    read_only_command(
        "event",
        "An event reports a change of state, such as a failed disk, with time, sequence number, \
         event id, severity, subject and text. The daemon stores the latest 10 000 events, at most 32 MiB; \
         they survive restarts. docs/reference/events.md lists all event ids.",
        &["suimon event list --severity warning", "suimon event follow"],
    ),
    read_only_command(
        "event list",
        "Prints one line per event: time (UTC), sequence number, event id, severity, subject, text \
         and, in parentheses, fields that the text does not contain. Filters are combined: an \
         event is printed if it passes all of them.",
        &[
            "suimon event list --severity warning --limit 20",
            "suimon event list --subject disk/web",
            "suimon event list --id 6108",
        ],
    ),
    read_only_command(
        "event follow",
        "Prints each event when it occurs, in the format of `event list`, until Ctrl-C is pressed. \
         Fails with exit code 5 when the daemon ends.",
        &["suimon event follow --severity warning", "suimon event follow --subject vm"],
    ),
    read_only_command(
        "operation",
        "Each change is carried out by an operation of the daemon, which has a number, progress \
         and a result. An operation continues when the command that started it is interrupted. \
         The daemon lists running operations and the last 1000 that ended since it started. It \
         keeps at most 16 MiB of plans, reports and errors of ended operations: beyond that, those \
         of the operations that ended first are dropped.",
        &["suimon operation list", "suimon operation watch 7"],
    ),
    read_only_command(
        "operation list",
        "Prints number, kind, subject, state, completed steps and start time (UTC) of each \
         operation, oldest first.",
        &["suimon operation list"],
    ),
    read_only_command(
        "operation show",
        "Prints the state, progress, report, error and plan of the operation, without waiting.",
        &["suimon operation show 7"],
    ),
    read_only_command(
        "operation cancel",
        "Requests the cancellation and returns. The operation ends before its next step, and the \
         previous state is restored. An operation that has ended is unchanged. `suimon operation \
         watch` waits for the end.",
        &["suimon operation cancel 7"],
    ),
    read_only_command(
        "operation watch",
        "Shows progress until the operation ends, then prints its report. The exit code is that of \
         the operation: 0 if it succeeded, 7 if it was cancelled, otherwise that of its error. \
         Ctrl-C ends the waiting, not the operation.",
        &["suimon operation watch 7"],
    ),
    read_only_command(
        "power",
        "A power plan sets frequency governor, turbo and idle states of the CPUs, and how long \
         workers poll before they sleep. Without a plan, the daemon changes no CPU setting.",
        &["suimon power show", "suimon power set balanced"],
    ),
    read_only_command(
        "power show",
        "Prints the plan, the settings that it requires, the current value of each with the reason \
         if it is not in effect, and the power of the CPU packages in watts if the host has RAPL \
         counters.",
        &["suimon power show"],
    ),
    state_changing_command(
        "power set",
        "With the name of a plan, replaces the previous plan with all of its keys; keys that are \
         not given get the values of the plan. Without a name, changes the given keys only. \
         Settings apply to all CPUs at once; VMs and their I/O continue. The daemon restores the \
         former CPU settings when it ends, and applies the plan again when it starts.",
        &[
            "suimon power set balanced",
            "suimon power set high-performance turbo=off",
            "suimon power set poll_us=20 parking=default",
        ],
    ),
    state_changing_command(
        "power unset",
        "Removes the plan and restores the CPU settings that were in effect before it. VMs and \
         their I/O continue.",
        &["suimon power unset"],
    ),
];
