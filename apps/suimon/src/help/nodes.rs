//! Help of commands about SR-IOV adapters, other nodes and the cluster.

use crate::help::entry::{Help, read_only_command, state_changing_command};

pub(super) const HELP: &[Help] = &[
    read_only_command(
        "pf",
        "A physical function (PF) is an SR-IOV adapter that `[[pf]]` in the host file \
         configures: its number of virtual functions (VFs) and their settings. `suimon vf` shows \
         all SR-IOV adapters of the host, configured or not.",
        &["suimon pf list", "suimon vf list"],
    ),
    read_only_command(
        "pf list",
        "Prints device, number of configured, existing and used VFs, and health of each configured \
         adapter.",
        &["suimon pf list"],
    ),
    read_only_command(
        "pf show",
        "Prints the keys, health and VFs of the adapter.",
        &["suimon pf show wan"],
    ),
    state_changing_command(
        "pf add",
        "Creates the VFs. While their number changes, the adapter is reset: its link is down for \
         some seconds.",
        &["suimon pf add wan --device eth0 --vfs 4"],
    ),
    state_changing_command(
        "pf set",
        "The number of VFs can change only while no VF is in use, and resets the adapter: its link \
         is down for some seconds. `suimon vf set` changes the settings of one VF.",
        &["suimon pf set wan --vfs 8"],
    ),
    state_changing_command(
        "pf delete",
        "The daemon stops configuring the adapter. Its VFs and their settings stay as they are.",
        &["suimon pf delete wan"],
    ),
    read_only_command(
        "vf",
        "A virtual function (VF) is a part of an SR-IOV adapter that a VM or a network namespace \
         uses directly. An adapter is named by its network device (eth0), its PCI address \
         (0000:01:00.0) or the name of its `[[pf]]`.",
        &["suimon vf list", "suimon vf enable eth0 --count 4"],
    ),
    read_only_command(
        "vf list",
        "Prints all SR-IOV adapters of the host, the VFs of each with their users, and anything \
         that prevents VMs from using VFs, with its remedy.",
        &["suimon vf list"],
    ),
    read_only_command(
        "vf show",
        "Prints the state of an adapter and its VFs, or with a number the state and settings of \
         one VF.",
        &["suimon vf show eth0", "suimon vf show eth0 2"],
    ),
    state_changing_command(
        "vf enable",
        "All existing VFs are removed before the new ones are created, and the link of the adapter \
         is down for some seconds. Fails while a VF is in use. Changes `vfs` of the `[[pf]]` of \
         the adapter; without one, adds a `[[pf]]` with the name of the device.",
        &["suimon vf enable eth0 --count 4", "suimon vf enable eth0 --count 0"],
    ),
    state_changing_command(
        "vf set",
        "Changes apply at once while the VF is in use. Keys that are not given are unchanged. The \
         setting is kept in the `[[pf]]` of the adapter, which is added if it does not exist.",
        &["suimon vf set eth0 2 vlan=20 trust=on", "suimon vf set eth0 2 vlan=default"],
    ),
    read_only_command(
        "node",
        "A node is another host that runs Suimon, configured by `[[node]]` in the host file. VMs \
         can migrate to it. Its daemon must listen on TCP (`[api]` in its host file). The nodes \
         of a cluster (`suimon cluster`) are configured separately.",
        &["suimon node list", "suimon node drain node1 --dry-run"],
    ),
    read_only_command(
        "node list",
        "Connects to each node and prints its host name, version, drain state and whether it \
         responds. Takes up to 5 s.",
        &["suimon node list"],
    ),
    read_only_command(
        "node show",
        "Connects to the node and prints its keys, host name, version and drain state. Takes up to \
         5 s.",
        &["suimon node show node2"],
    ),
    state_changing_command(
        "node add",
        "Makes the node available as destination of `suimon vm migrate` and `suimon node drain`. \
         Migration in the opposite direction requires a `[[node]]` on the other host. The daemon \
         reads the certificate and the token at each connection.",
        &[
            "suimon node add n2 --address n2:8443 --ca-certificate /etc/n2.pem --token-file /etc/n2.tok",
        ],
    ),
    state_changing_command(
        "node set",
        "Changes apply to the next connection; migrations in progress continue.",
        &["suimon node set node2 --address 192.0.2.2:8443"],
    ),
    state_changing_command(
        "node delete",
        "Removes the node as destination. Nothing changes on the node itself. A VM that was \
         being handed over to the node (`handed over` in `suimon vm list`) resumes on this host: \
         make sure first that the other host is switched off, otherwise the VM runs twice.",
        &["suimon node delete node2"],
    ),
    read_only_command(
        "node drain",
        "Migrates the running VMs of the node one after another, each to the permitted node that \
         accepts it and has received the fewest VMs. VMs that do not run stay. No VM can migrate \
         to a drained node, also after a restart of its daemon, until `suimon node undrain`. If a \
         VM cannot migrate, the command fails and names VM and reason; the node stays drained, \
         and the command can be repeated.",
        &["suimon node drain node1 --dry-run", "suimon node drain node1 --to node2,node3"],
    ),
    read_only_command(
        "node undrain",
        "Permits migrations to the node again, and stops a drain in progress. VMs that have left \
         stay on their new nodes.",
        &["suimon node undrain node1"],
    ),
    read_only_command(
        "cluster",
        "Hosts that join the same cluster (the same name in the same etcd) divide the IOPS of \
         stores in shared directories (`shared = true`), so that minimums and maximums of disks \
         hold across nodes. On each shared store, a node has a reservation, IOPS for its minimums \
         that it keeps without contact to the cluster, and gets leases: grants of spare IOPS for 3 s. \
         The leader of the store, an elected node, issues them. Migration of VMs does not \
         require a cluster.",
        &["suimon cluster status"],
    ),
    read_only_command(
        "cluster status",
        "Prints the configuration, the nodes, and for each shared store its leader, the IOPS \
         that this host may use, and the leases and reservations of all nodes.",
        &["suimon cluster status"],
    ),
    state_changing_command(
        "cluster init",
        "Creates the cluster in etcd and adds this host as its first node. Fails if the cluster \
         exists. From then on, the disks of this host on shared stores are limited to the \
         reservations and leases of this host; other disks and VMs are not affected.",
        &["suimon cluster init lab --as n1 --endpoints http://192.0.2.10:2379"],
    ),
    state_changing_command(
        "cluster join",
        "Adds this host to the cluster; the cluster is created if it does not exist. From then \
         on, the disks of this host on shared stores are limited to the reservations and leases \
         of this host; other disks and VMs are not affected.",
        &["suimon cluster join lab --as n2 --endpoints http://192.0.2.10:2379"],
    ),
    state_changing_command(
        "cluster set",
        "Changes how this host connects to etcd. Reservations and leases of the host, and requests \
         of its disks, are not affected. Keys that are not given are unchanged.",
        &["suimon cluster set endpoints=https://192.0.2.10:2379,https://192.0.2.11:2379"],
    ),
    state_changing_command(
        "cluster leave",
        "Releases the reservations of this host and removes it from the cluster, which takes up \
         to 10 s. Fails while disks are on shared stores, because the cluster would no longer \
         limit the IOPS of this host on them. `--force` leaves nevertheless. Limits of single \
         disks and policies stay in effect on this host.",
        &["suimon cluster leave"],
    ),
    read_only_command(
        "cluster remove",
        "Frees the name and the reservations of a node that will not return. Fails while the \
         node is alive; run `suimon cluster leave` on it instead. Make sure first that the node \
         is switched off: a node without connection to etcd may still run VMs.",
        &["suimon cluster remove n2"],
    ),
];
