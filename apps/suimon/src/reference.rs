//! Reference pages in Markdown: command line, host file, errors, events and tables of status.

use clap::Command;
use suimon_contract::{
    ChangeEffect, ErrorCode, EventKind, Form, Key, ResourceKind, default_text, key_meaning,
    renames_page,
};

use crate::exit::EXIT_CODES;

const GENERATED: &str = "<!-- Made by `make docs`. Change the source, not this page. -->\n\n";

/// Returns the reference pages: file name and text of each.
pub(crate) fn pages(command: Command) -> [(&'static str, String); 6] {
    [
        ("cli.md", command_line(command)),
        ("config.md", host_file()),
        ("errors.md", errors()),
        ("events.md", events()),
        ("renames.md", renames()),
        ("status.md", format!("{GENERATED}{}", suimon_tables::reference::page())),
    ]
}

fn command_line(command: Command) -> String {
    let mut text = format!("{GENERATED}# The command line\n\n");
    text.push_str(
        "Each section is the output of `--help` of a command. Commands print data on standard output, \
         and messages and progress on standard error. Commands that print data accept `--json`, \
         except `metrics`.\n\n",
    );
    text.push_str(&suimon_pages::command_reference(command));
    text
}

fn host_file() -> String {
    let mut text = format!("{GENERATED}# The host file\n\n");
    text.push_str(
        "A host file is a TOML file that describes the whole desired state of a host. `suimon check` \
         checks it, `suimon apply` applies it. Keys that are not listed here are rejected. A default \
         of `–` means that an absent key has the effect that its meaning states.\n\n\
         *Normalised IOPS* are operations per second in units of `normalization_bytes` of the store (8 KiB by default). \
         A *worker* is a data-plane thread of the daemon. On a store that nodes of a cluster share, a node has a \
         *reservation*: IOPS for its minimums that it keeps without contact to the cluster. The \
         [glossary](../explanation/glossary.md) has other terms.\n\n\
         The column *change* states the effect of a change of the value while the daemon runs:\n\n\
         | change | effect |\n|---|---|\n\
         | live | Applies at once. No port, disk or store is closed, so that traffic and requests continue, except if the \
         column *meaning* of the key names an interruption. |\n\
         | replace | Closes and reopens the port or disk, or the store with all of its disks. Traffic \
         of the port stops, and requests of the disks are queued, until it is open and its clients have \
         reconnected; NBD clients are disconnected. Other objects are not affected. |\n\
         | live on TAP | As *live* on a TAP or legacy NIC, as *replace* on a vhost-user NIC. |\n\
         | when a VM starts | Running VMs keep the former value until their next start. |\n\
         | at daemon start | Takes effect when the daemon starts next. |\n\
         | another resource | The name identifies the object: another name denotes another object. |\n\
         | after leaving | Rejected while the host is in the cluster: run `suimon cluster leave` first. |\n\n",
    );
    for kind in [
        ResourceKind::Host,
        ResourceKind::Api,
        ResourceKind::Console,
        ResourceKind::Lab,
        ResourceKind::Power,
        ResourceKind::Cluster,
    ]
    .into_iter()
    .chain(ResourceKind::RESOURCES)
    {
        let header = match kind.is_resource() {
            true => format!("[[{}]]", kind.noun()),
            false => format!("[{}]", kind.noun()),
        };
        keys(&mut text, &header, kind, None);
        for key in kind.keys() {
            if let Form::Table(inner) = key.form {
                let header = format!("[{}.{}]", kind.noun(), key.name);
                keys(&mut text, &header, inner, Some(key.effect));
            }
            if let Form::Tables(inner) = key.form {
                let header = format!("[[{}.{}]]", kind.noun(), key.name);
                keys(&mut text, &header, inner, Some(key.effect));
            }
        }
    }
    text
}

/// Returns true if the value of the key is a table or an array of tables, which the page describes
/// separately.
const fn is_table(key: &Key) -> bool {
    matches!(key.form, Form::Table(_) | Form::Tables(_))
}

/// Appends the table of keys of one kind. `of_table` is the effect of changing the key that
/// contains a nested table; it applies to all keys of the table.
fn keys(text: &mut String, header: &str, kind: ResourceKind, of_table: Option<ChangeEffect>) {
    text.push_str(&format!("## `{header}`\n\n"));
    text.push_str("| key | value | default | change | meaning |\n|---|---|---|---|---|\n");
    for key in kind.keys().iter().filter(|key| !is_table(key)) {
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            key.name,
            cell(&key.form.describe()),
            default_text(kind, key.name).map_or("required".to_owned(), |text| cell(&text)),
            effect(of_table.unwrap_or(key.effect)),
            cell(&key_meaning(kind, key.name).unwrap_or_default()),
        ));
    }
    text.push('\n');
}

const fn effect(effect: ChangeEffect) -> &'static str {
    match effect {
        ChangeEffect::Live => "live",
        ChangeEffect::LiveOnTap => "live on TAP",
        ChangeEffect::Replace => "replace",
        ChangeEffect::NextVmStart => "when a VM starts",
        ChangeEffect::NextDaemonStart => "at daemon start",
        ChangeEffect::Identity => "another resource",
        ChangeEffect::AfterLeavingCluster => "after leaving",
    }
}

fn renames() -> String {
    let mut text = format!("{GENERATED}# Renamed names\n\n");
    text.push_str(
        "Old names stay valid until the version in the last column. Host files, requests and commands accept \
         both names and report a use of the old one; responses, events and metrics have both. A request with \
         both names and different values is rejected. The other reference pages have the new names.\n\n",
    );
    text.push_str(&renames_page());
    text
}

fn errors() -> String {
    let mut text = format!("{GENERATED}# Errors\n\n");
    text.push_str(
        "Every error of the API has a code and a message with the cause and the next step. If they \
         are known, it also has the resource, the key, the file and the line. The meaning of a code \
         does not change between versions. A response with several errors has the HTTP status of \
         the first one.\n\n| code | HTTP status | meaning |\n|---|---|---|\n",
    );
    for code in ErrorCode::ALL {
        text.push_str(&format!("| `{code}` | {} | {} |\n", code.http_status(), code.description()));
    }
    text.push_str("\n## Exit codes of `suimon`\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in EXIT_CODES {
        text.push_str(&format!("| {code} | {meaning} |\n"));
    }
    text.push_str(
        "\n`suimon image check` and `suimon image repair` have the exit codes of `qemu-img check` instead; their help lists \
         them.\n",
    );
    text
}

/// Fields of events that several kinds have, or that need an explanation: names, separated by `, `,
/// and their meaning.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("address", "MAC or IP address that the text names."),
    ("capacity_iops", "Capacity of the store, in normalised IOPS as all fields with `_iops`."),
    (
        "cause",
        "Cause of an unmet minimum: the [tables of \
         causes](../how-to/guarantee-a-minimum.md#troubleshooting).",
    ),
    (
        "delivered_iops, demand_iops, guaranteed_iops",
        "Rates of the disk in the last 5 s, as in `suimon qos flows`.",
    ),
    (
        "detail, error, reason",
        "Cause of the event, such as an error text of the peer or of the operating system.",
    ),
    (
        "device, member, nic, node, peer, port, queue, store, uplink, user, vf",
        "Object or peer that the text names beside the subject.",
    ),
    ("device_latency_ns", "Mean time of a request in the device, in nanoseconds."),
    (
        "displaced_by",
        "Disks that got the rate instead, each with its delivered IOPS, separated by commas.",
    ),
    (
        "estimate_iops",
        "Estimated capacity: rate that the store delivers while requests are queued.",
    ),
    ("events", "Number of events that this one stands for."),
    ("external_iops", "Capacity of the store, minus the IOPS that its disks received."),
    ("from, to", "Former and new value: worker, port, member or partner."),
    (
        "lasting_s, lasted_s",
        "How long the state has lasted, or had lasted when it ended, in seconds.",
    ),
    ("late_reason", "Error text, if the worker did not confirm the move in time."),
    ("migrated", "Number of VMs that have migrated during a drain."),
    (
        "move_reason",
        "Reason for which VMQ moves the queue; see \
         [Reasons](../how-to/find-the-worker-of-a-queue.md#reasons).",
    ),
    ("needed_iops", "Capacity that the minimums require, because they may use at most 90 % of it."),
    ("newly_online, online", "CPUs that came online, and all that are online."),
    (
        "nodes_without_reports",
        "Nodes of the cluster that sent no reports at the time of the event.",
    ),
    ("offset", "First byte of the failed request."),
    (
        "on_request",
        "`true` if the file systems were thawed by a command, `false` after the time limit.",
    ),
    ("operation", "Kind or number of the operation."),
    ("other_hosts", "Hosts outside of the cluster that use the store."),
    ("other_load_iops", "Load of other disks while the store was measured."),
    ("requested_iops", "Increase of its reservation that a node requested."),
    (
        "reserved_iops",
        "Sum of the minimums on the store, or of the reservations of all nodes (event 6215).",
    ),
    ("revision", "Revision of the desired state."),
    (
        "side",
        "End of an LACP link that is out of sync: `actor` (this host) or `partner`. For a queue: \
         `rx` or `tx`.",
    ),
    ("unreported_failures", "Number of failed requests since the former event of this kind."),
];

fn events() -> String {
    let mut text = format!("{GENERATED}# Events\n\n");
    text.push_str(
        "A *worker* is a data-plane thread of the daemon. On a store that nodes of a cluster share, a node has a \
         *reservation*, IOPS for its minimums that it keeps without contact to the cluster, and gets *leases*, grants of spare \
         IOPS for 3 s, from the *leader* of the store, an elected node. The [glossary](../explanation/glossary.md) has other \
         terms.\n\n\
         Numbers and names never change their meaning: 1xxx host, other nodes and cluster, 2xxx switch, 3xxx NIC, 4xxx \
         uplink and team, 5xxx worker and queue, 6xxx store, disk and Storage QoS, 7xxx VM, 8xxx power, 9xxx SR-IOV.\n\n\
         Events that guests, clients and network peers can cause at will (connections, protocol violations, link changes, \
         failed requests) are limited per subject: the first 10 events of one kind within 10 s are reported at once; of \
         further ones, only the last is reported, at the end of the 10 s and then every 10 s while more occur. It has the time \
         of its occurrence, and in the field `events` the number of events for which it stands. Kinds that report opposite states, such as link up and link down, are limited together.\n\n| id | name | severity | meaning |\n|---|---|---|---|\n",
    );
    for kind in EventKind::ALL {
        text.push_str(&format!(
            "| {} | `{}` | {} | {} |\n",
            kind.id(),
            kind.name(),
            kind.severity().as_str(),
            kind.meaning()
        ));
    }
    text.push_str(
        "\n## Fields of events\n\nFields that several kinds have, or that need an explanation. Further fields repeat \
         values of the text. `suimon event list --json` prints them under `fields`, as strings.\n\n\
         | field | meaning |\n|---|---|\n",
    );
    for (names, meaning) in EVENT_FIELDS {
        text.push_str(&format!("| `{}` | {meaning} |\n", names.replace(", ", "`, `")));
    }
    text
}

/// Escapes text for use in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_command_error_and_event_has_its_line() {
        let [(_, cli), (_, config), (_, errors), (_, events), ..] = pages(crate::cli::command());
        let tables = [
            ResourceKind::Host,
            ResourceKind::Api,
            ResourceKind::Console,
            ResourceKind::Lab,
            ResourceKind::Power,
            ResourceKind::Cluster,
            ResourceKind::ClusterTls,
            ResourceKind::Offload,
            ResourceKind::Vmq,
            ResourceKind::DiskQos,
            ResourceKind::DiskVhostUser,
            ResourceKind::DiskNbd,
            ResourceKind::Vf,
        ];
        for kind in tables.into_iter().chain(ResourceKind::RESOURCES) {
            let own_keys = kind.keys().iter().filter(|key| !is_table(key));
            for key in own_keys {
                assert!(config.contains(&format!("\n| `{}` | ", key.name)), "{}", key.name);
            }
        }
        let tables = ["[uplink.offload]", "[nic.offload]", "[switch.host_offload]"];
        let of_disks = ["[disk.qos]", "[disk.vhost_user]", "[disk.nbd]", "[[pf.vf]]"];
        let vmq = ["[uplink.vmq]", "[team.vmq]", "[cluster.tls]"];
        for header in tables.into_iter().chain(vmq).chain(of_disks) {
            assert_eq!(config.matches(&format!("\n## `{header}`\n")).count(), 1, "{header}");
        }
        assert!(cli.contains("\n#### suimon nic add\n"), "{cli}");
        assert!(cli.contains("\n#### suimon qos policy add\n"), "{cli}");
        assert!(!cli.contains("suimon docs --dir"));
        assert_eq!(errors.matches("\n| `").count(), ErrorCode::ALL.len());
        let is_event = |line: &&str| {
            line.strip_prefix("| ")
                .is_some_and(|row| row.starts_with(|first: char| first.is_ascii_digit()))
        };
        assert_eq!(events.lines().filter(is_event).count(), EventKind::ALL.len());
    }

    #[test]
    fn commands_of_tables_exist() {
        let program = crate::cli::command();
        for command in suimon_tables::reference::commands() {
            let mut verb = &program;
            for subcommand in command
                .split(' ')
                .take_while(|subcommand| subcommand.starts_with(char::is_lowercase))
            {
                verb = verb
                    .find_subcommand(subcommand)
                    .unwrap_or_else(|| panic!("no command {command}"));
            }
        }
    }
}
