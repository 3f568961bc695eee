//! Catalogue of event kinds.

use crate::Severity;

macro_rules! catalogue {
    ($($id:literal $kind:ident $name:literal $severity:ident $meaning:literal;)*) => {
        /// Kind of an event. Numbers and names never change their meaning: 1xxx host, other nodes
        /// and cluster, 2xxx switch, 3xxx NIC, 4xxx uplink and team, 5xxx worker and queue, 6xxx
        /// store, disk and Storage QoS, 7xxx VM, 8xxx power, 9xxx SR-IOV.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum EventKind {
            $(#[doc = $meaning] $kind = $id,)*
        }

        impl EventKind {
            /// Event kinds in ascending order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the stable number of the kind.
            pub const fn id(self) -> u32 {
                self as u32
            }

            /// Returns the stable name of the kind.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns the severity of events of this kind.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$kind => Severity::$severity,)* }
            }

            /// Returns the meaning in one or two sentences.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$kind => $meaning,)* }
            }
        }
    };
}

catalogue! {
    1001 DaemonStarted "daemon_started" Info
        "The daemon has started and serves its API.";
    1002 DaemonStopping "daemon_stopping" Info
        "The daemon received a request to stop and closes its ports and disks.";
    1003 DesiredStateChanged "desired_state_changed" Info
        "The configuration was changed and saved to the state directory.";
    1004 ChangeRolledBack "change_rolled_back" Error
        "A change of the configuration failed and was rolled back: the former configuration is in effect. The text contains the error. Remove its cause, and repeat the change.";
    1005 StoreOpened "store_opened" Info
        "The daemon opened its state directory at its start and read the stored configuration from it, after a crash as well. The event does not concern a store of disks.";
    1006 StateNotWritable "state_not_writable" Error
        "The state directory cannot be written: it is full, read-only, or permission is missing. The host works as configured. Until the directory can be written, changes of the configuration are rejected, VMs are not started, and new events are kept in memory only. Free space, remount the file system writable, or correct its permissions; `suimon host show` shows the reason.";
    1007 StateWritable "state_writable" Info
        "The state directory can be written again: changes of the configuration are accepted, VMs can be started, and events that were kept in memory are stored.";
    1008 HostFileNotApplied "host_file_not_applied" Error
        "The host file was not applied at the start: it is rejected, or the state directory cannot be written. The stored configuration is in effect. Correct the file or make the state directory writable, then run `suimon apply` or `systemctl reload suimond`.";
    1009 ListenerFailed "listener_failed" Error
        "The TCP listener of `[api]` or `[console]` cannot be used: its address is on no device of this host or is in use, its port is not permitted, or a file that it names cannot be used. Check the address and the files; the text contains the reason. The daemon works without the listener, and tries again every 5 s with the present settings and files.";
    1010 ConfinementInEffect "confinement_in_effect" Info
        "The daemon and its workers dropped the capabilities, system calls and file access that they do not need; the fields list what is in effect.";
    1011 ConfinementIncomplete "confinement_incomplete" Warning
        "The daemon is not confined, or only in part: it was started with confinement off, or the kernel lacks seccomp or Landlock; the fields list what is missing. Start the daemon without `--no-confine`, or use a kernel with seccomp and Landlock.";
    1012 SystemCallRefused "system_call_refused" Error
        "A thread of the daemon called a system call outside of its allow list, which the kernel denied. The daemon has a defect or was compromised: save its log, restart it, and report the defect. At most one event in 10 s.";
    1013 RecordNotSaved "record_not_saved" Error
        "A record cannot be saved in the state directory, and the daemon retries. The text names the record and what is not in effect until it is saved. Reported once until the failure ends or changes. Make the state directory writable; `suimon host show` shows the reason.";
    1020 AccessRefused "access_refused" Warning
        "A peer sent wrong tokens or login codes to the TCP listener of the API or to the console. Update the token of the client, or block the peer in the firewall. The fields contain the listener, the peer, the number of wrong tokens or codes and the seconds from the first to the last. The first event is emitted 2 s after the first wrong token or code, further ones at intervals of at least 60 s.";
    1101 NodeCreated "node_created" Info
        "A node was created in the configuration; VMs can migrate to it.";
    1102 NodeChanged "node_changed" Info
        "The address, certificate or token of a node was changed.";
    1103 NodeDeleted "node_deleted" Info
        "A node was deleted from the configuration.";
    1110 NodeDrained "node_drained" Info
        "Draining of the host began: it accepts no VM, and its running VMs migrate to other nodes.";
    1111 NodeEmptied "node_drain_completed" Info
        "Draining is complete: no VM runs on the host.";
    1112 NodeNotEmptied "node_drain_incomplete" Warning
        "Draining is incomplete: VMs still run on the host. The text lists each VM and the reason. Remove the reasons and repeat `suimon node drain`, or end draining with `suimon node undrain`.";
    1113 NodeUndrained "node_undrained" Info
        "Draining ended: the host accepts VMs again.";
    1201 ClusterJoined "cluster_joined" Info
        "The host joined the cluster: etcd stores its node record under its name.";
    1202 ClusterLeft "cluster_left" Info
        "The host left the cluster; the field `released` says whether its reservations on shared stores were released. If they were not, run `suimon cluster remove NODE` on another node.";
    1203 ClusterUnreachable "cluster_unreachable" Warning
        "The etcd of the cluster does not respond. When the leases of this host expire (3 s), its disks on shared stores are limited to the reservations of the host, and after 30 s to `fallback_iops` of the store if that is higher. Check etcd and the network.";
    1204 ClusterReachable "cluster_reachable" Info
        "The etcd of the cluster responds again.";
    1205 ClusterRefused "cluster_refused" Error
        "The host cannot join the cluster: another host has the same node name, or etcd rejects the host's credentials. The daemon retries. Set another `node` name in `[cluster]`, or check `user`, `password_file` and the client certificate (`tls`).";
    1210 ClusterLeads "cluster_leads" Info
        "This node was elected leader of a shared store: it divides the IOPS of the store among the nodes.";
    1211 ClusterLeadLost "cluster_lead_lost" Info
        "This node stopped being the leader of a shared store. The text contains the reason. The nodes elect a leader again; without one, leases expire, and each node is limited to its reservation. If the event repeats, check etcd.";
    1212 NodeSilent "node_silent" Warning
        "A node with disks on a shared store has stopped sending reports. Its reservation is kept. Check the node. If it will not return, make sure that it is switched off, then run `suimon cluster remove NODE`.";
    1213 NodeOfOtherVersion "node_of_other_version" Warning
        "A node has another cluster protocol version, or another `normalization_bytes`. It gets no leases and keeps its reservation. Run the same version with the same setting on all nodes.";
    1214 NodeUnaccounted "node_unaccounted" Warning
        "A node holds a reservation that the cluster has no record of granting, because `suimon cluster remove` removed the node and it still runs or runs again, or because etcd was restored from a backup. The leader counts the reservation from now on. If the node was removed, switch it off: its VMs may also run on another node. After a restore of etcd, no action is needed.";
    2001 SwitchCreated "switch_created" Info
        "A switch was created.";
    2002 SwitchChanged "switch_changed" Info
        "A switch was changed; the text says whether its traffic was interrupted.";
    2003 SwitchDeleted "switch_deleted" Info
        "A switch was deleted.";
    2004 StormLimitReached "storm_limit_reached" Warning
        "A port exceeds `storm_limit_fps`: flooded frames (broadcast, multicast, unknown unicast) beyond the limit are dropped. Look for a loop or a faulty guest, or raise the limit. At most one event per port in 10 s.";
    3001 NicCreated "nic_created" Info
        "A NIC was created.";
    3002 NicChanged "nic_changed" Info
        "A NIC was changed; the text says whether its traffic was interrupted.";
    3003 NicDeleted "nic_deleted" Info
        "A NIC was deleted.";
    3004 NicConnected "nic_connected" Info
        "A VM connected to the socket of a NIC.";
    3005 NicDisconnected "nic_disconnected" Warning
        "The VM disconnected from the socket of a NIC. This is expected if the VM was stopped; otherwise check the log of its QEMU.";
    3006 NicDriverReady "nic_driver_ready" Info
        "The guest's driver negotiated features; the queues of the NIC are in use.";
    3007 NicProtocolViolation "nic_protocol_violation" Error
        "The guest or VMM of a NIC violated the virtio or vhost-user protocol; only its own queue or connection was closed. Reset the VM, and update its virtio driver or VMM.";
    3008 NicFailed "nic_failed" Error
        "A NIC, or the host NIC of a switch, is out of service, because its socket or device cannot be opened or used; the text contains the reason. Remove the cause; the daemon retries.";
    3009 NicRecovered "nic_recovered" Info
        "A NIC that had failed is in service again.";
    3010 NicAddressRefused "nic_address_refused" Warning
        "A port sent frames from a source address that port security does not allow or that belongs to another NIC; the frames are dropped. The subject is the sending port. Check the guest; if it may use other addresses, set `mac_spoofing` of its NIC. At most one event per port in 10 s.";
    3011 CaptureStarted "capture_started" Info
        "A capture of a port's frames started.";
    3012 CaptureStopped "capture_stopped" Info
        "A capture of a port's frames ended.";
    3013 NicAddressMoved "nic_address_moved" Warning
        "A learned address was seen on another port than before. The subject is the new port, the field `from` the former one. Set `mac` of NICs whose address must not move. At most one event per port in 10 s.";
    3014 NicAddressBound "nic_address_bound" Info
        "The first source address of a guest was bound to its NIC, which has no `mac`: other NICs may not send from this address.";
    4001 UplinkCreated "uplink_created" Info
        "An uplink was created.";
    4002 UplinkChanged "uplink_changed" Info
        "An uplink was changed; the text says whether its traffic was interrupted.";
    4003 UplinkDeleted "uplink_deleted" Info
        "An uplink was deleted.";
    4004 UplinkLinkUp "uplink_link_up" Info
        "The device of an uplink has carrier.";
    4005 UplinkLinkDown "uplink_link_down" Warning
        "The device of an uplink lost carrier. Check the cable and the switch port.";
    4006 UplinkFailed "uplink_failed" Error
        "The device of an uplink cannot be opened or used, or cannot send and receive LACPDUs; the text contains the reason. Remove the cause; the daemon retries.";
    4007 UplinkRecovered "uplink_recovered" Info
        "An uplink that had failed is in service again.";
    4101 TeamCreated "team_created" Info
        "A team was created.";
    4102 TeamChanged "team_changed" Info
        "A team was changed; the text says whether its traffic was interrupted.";
    4103 TeamDeleted "team_deleted" Info
        "A team was deleted.";
    4104 TeamUp "team_up" Info
        "A team has at least `min_links` usable members and forwards frames.";
    4105 TeamDown "team_down" Error
        "A team has fewer usable members than `min_links` and forwards no frame. Check the links of its members, or lower `min_links`.";
    4106 TeamMemberUsable "team_member_usable" Info
        "A member of a team became usable.";
    4107 TeamMemberFailed "team_member_failed" Warning
        "A member of a team failed; its traffic moved to the other members. `suimon team show` shows the reason. Check the cable and the switch port, and in mode `lacp` the LACP configuration of the switch.";
    4108 TeamStandbyTookOver "team_standby_took_over" Warning
        "The standby member of a team replaced a failed member. Check the cable and switch port of the failed member.";
    4109 TeamStandbyReleased "team_standby_released" Info
        "The standby member of a team is idle again: the failed member recovered.";
    4110 TeamPrimaryChanged "team_primary_changed" Info
        "The primary (receiving) member of a team changed.";
    4111 TeamPrimaryRestored "team_primary_restored" Info
        "The configured primary of a team is its receiving member again.";
    4112 LacpOutOfSync "lacp_out_of_sync" Warning
        "LACP of a team's member has been out of sync for 60 s; the field `side` is `actor` for this host and `partner` for the switch. Check the LACP configuration of that side.";
    4113 LacpInSync "lacp_in_sync" Info
        "LACP of a team's member is in sync again.";
    4114 LacpLooped "lacp_looped" Warning
        "The link of a team's member is looped back to this host; the member is not used. Check the cables.";
    4115 LacpLoopEnded "lacp_loop_ended" Info
        "The loop on the link of a team's member has ended; the member can be used again.";
    4116 LacpPartnerChanged "lacp_partner_changed" Warning
        "The LACP partner on the link of a team's member changed: another system (cables were changed, or LACPDUs are forged), or another key, port or priority of the same system (its configuration was changed). If the change was not intended, check cables and switch. At most one event per member in 10 s.";
    5001 QueueMoved "queue_moved" Info
        "A queue of a port was moved to another worker, by VMQ (field `reason`: `vmq`) or by `suimon queue move` (`request`).";
    5002 ProcessorStarted "worker_started" Info
        "A worker started. The text names the CPU to which it is pinned, or `any CPU` if it is not pinned (`floating_workers`).";
    5003 ProcessorStopped "worker_stopped" Info
        "A worker handed over its queues and stopped.";
    5004 QueueMoveMeasured "queue_move_measured" Info
        "Measured loads of both workers after VMQ moved a queue; the fields also contain the predicted loads.";
    5005 QueueMoveFailed "queue_move_failed" Warning
        "VMQ could not move a queue to another worker; the queue stays where it is. The text contains the reason. VMQ retries; if the event repeats, check both workers with `suimon worker list`.";
    5006 WorkerStalled "worker_stalled" Error
        "A worker has made no progress for 5 s: the queues that it owns are not served. The text names the device that it serves, if that is known. Check that device and the kernel log; if the worker does not resume, restart the daemon.";
    5007 WorkerResumed "worker_resumed" Info
        "A worker that was stalled serves its queues again.";
    6001 StoreCreated "store_created" Info
        "A store was created in the configuration.";
    6002 StoreChanged "store_changed" Info
        "A store was changed; the text says whether the I/O of its disks was interrupted.";
    6003 StoreDeleted "store_deleted" Info
        "A store was deleted from the configuration; its files were kept.";
    6004 StoreFailed "store_failed" Error
        "The directory or device of a store cannot be read, or does not respond; the text contains the reason. The daemon checks every store every 10 s. Remove the cause. Event 6108 reports each disk that cannot be opened.";
    6005 StoreRecovered "store_recovered" Info
        "The directory or device of a store that event 6004 reported can be read again.";
    6006 StoreMeasured "store_measured" Info
        "The capacity of a store was measured; the fields contain the IOPS, and whether the minimums of its disks fit.";
    6101 DiskCreated "disk_created" Info
        "A disk was created in the configuration and its image was opened. Event 6111 reports a new image file.";
    6102 DiskChanged "disk_changed" Info
        "A disk was changed; the text says whether its I/O was interrupted.";
    6103 DiskDeleted "disk_deleted" Info
        "A disk was deleted from the configuration. Its file was kept, unless `--with-file` requested its deletion.";
    6104 DiskConnected "disk_connected" Info
        "A VM connected to the socket of a disk.";
    6105 DiskDisconnected "disk_disconnected" Warning
        "The VM disconnected from the socket of a disk. This is expected if the VM was stopped; otherwise check the log of its QEMU.";
    6106 DiskDriverReady "disk_driver_ready" Info
        "The guest's driver negotiated features; the queues of the disk are in use.";
    6107 DiskProtocolViolation "disk_protocol_violation" Error
        "The guest, VMM or NBD client of a disk violated the virtio, vhost-user or NBD protocol; only its own queue or connection was closed. Reset the VM or reconnect the client, and update its driver, VMM or client.";
    6108 DiskFailed "disk_failed" Error
        "A disk is out of service, because its image or device cannot be opened or used; the text contains the reason. Remove the cause; the daemon retries.";
    6109 DiskRecovered "disk_recovered" Info
        "A disk that had failed is in service again.";
    6110 DiskIoFailed "disk_io_failed" Error
        "The store failed a request of a disk, which was completed with an I/O error; the fields contain the error and the offset. Check the device of the store. At most one event per disk in 10 s.";
    6111 DiskFileMade "disk_file_created" Info
        "The image file of a disk did not exist and was created, because the disk is new or the image was requested.";
    6112 DiskResized "disk_resized" Info
        "A disk was enlarged. The guest of a virtio disk is notified at once; NBD clients see the new size when they reconnect, guests of IDE and SATA disks at their next start.";
    6113 DiskChecked "disk_checked" Info
        "The image file of a disk was checked; the fields contain the result.";
    6114 NbdClientRefused "nbd_client_refused" Warning
        "An NBD client was rejected; the fields contain its address and the reason. If the client is permitted to connect, check `users`, `groups`, `addresses` and the certificates in `[disk.nbd]`.";
    6115 DiskNotOffered "disk_not_offered" Error
        "A disk cannot be exported over NBD, for example because its size is not a multiple of its sector size; a VM of the disk is not affected. The text contains the reason. If it is the size, enlarge the disk to a multiple of its sector size (`suimon disk resize`).";
    6116 DiskStalled "disk_stalled" Error
        "The store has not completed a request of a disk for 5 s; its requests stay pending until it does. Disks in other stores are not affected; each further disk of the store that stalls has an event of its own. Check the device of the store.";
    6117 DiskAnswered "disk_resumed" Info
        "A disk that event 6116 reported as stalled is in service again: its store completes requests.";
    6118 DiskOpeningStalled "disk_opening_stalled" Error
        "The store did not respond while a disk was being opened; the disk opens as soon as it responds. Disks in other stores are not affected. Check the device of the store.";
    6119 DiskQueueFailed "disk_queue_failed" Error
        "The host has too few file descriptors or too little memory to serve a queue of a VM's disk or a connection of an NBD client. That queue or connection was closed; others are not affected. Raise `LimitNOFILE` of the suimond service, or free memory; then reset the VM, reconnect the client, or repeat the migration.";
    6120 DiskWorkResumed "disk_job_resumed" Info
        "A job on a disk was resumed. The exit of the previous daemon had interrupted it.";
    6121 DiskWorkGivenUp "disk_job_abandoned" Warning
        "A job on a disk was abandoned. The exit of the previous daemon had interrupted it. Its partial results were removed, and the disk is unchanged. The text contains the reason. Run the command of the job again.";
    6122 DiskHasManyLayers "disk_has_many_layers" Warning
        "A disk has 48 or more layers (its own image file and those of its parents). A disk with 64 layers cannot get another snapshot: merge layers (`suimon disk merge`).";
    6123 NbdLimitReached "nbd_limit_reached" Warning
        "The NBD server rejected a client because a limit of connections, negotiations or buffer memory was reached. The fields contain the client and the limit. Close clients, or raise the limit: `connections_max` or `buffer_max_bytes` in `[disk.nbd]`, or the `nbd_` keys in `[host]`.";
    6124 DiskFlushFailed "disk_flush_failed" Error
        "A flush of a disk failed, so that writes since the last successful flush may be lost. Writes and flushes of the disk fail until it is reopened; reads continue. Repair the store, run `suimon disk reopen`, and check the file systems of the guest.";
    6140 ImageRepaired "image_repaired" Info
        "The metadata of an image file was repaired; the former metadata was saved to a file beside it.";
    6141 ImageRelinked "image_relinked" Info
        "The recorded path of an image's parent was changed; the former metadata was saved to a file beside it.";
    6150 DiskFull "disk_full" Error
        "The store has no free space for requests of a disk. They are queued or fail, as `on_full` says; requests to allocated blocks are served. Free space, or move disks to another store.";
    6151 DiskHasSpace "disk_has_space" Info
        "The store has space for requests of a disk again: a queued request has succeeded, or no request of the disk has found the store full for 10 s.";
    6152 StoreNearlyFull "store_nearly_full" Warning
        "The used space of a store exceeds `full_warning_percent`. Free space, or move disks to another store.";
    6153 StoreHasSpace "store_has_space" Info
        "The used space of a store is below `full_warning_percent` again.";
    6154 VmPausedForSpace "vm_paused_for_space" Error
        "A VM is paused because the store of one of its IDE or SATA disks is full; it resumes when there is space. Free space, or move its disks to another store.";
    6155 VmContinuedWithSpace "vm_continued_with_space" Info
        "A VM was resumed and has run for 10 s. It had been paused because a store was full.";
    6201 QosPolicyCreated "qos_policy_created" Info
        "A QoS policy was created.";
    6202 QosPolicyChanged "qos_policy_changed" Info
        "A QoS policy was changed; its disks have the new limits.";
    6203 QosPolicyDeleted "qos_policy_deleted" Info
        "A QoS policy was deleted.";
    6204 MinimumUnmet "minimum_unmet" Warning
        "For 60 s a disk or policy was delivered less than 98 % of its guaranteed IOPS while it had requests for more than half of the time. A shortfall in 5 s of at most two requests of the size of the disk's largest recent one does not count. The field `cause` contains the limiting factor: `other-disks`, `foreign-load`, `device-latency` or `own-maximum`. If it is `other-disks`, measure the store, lower other minimums, or move disks to another store. If it is `foreign-load`, stop the external load of the store, or lower its `capacity_iops`. If it is `device-latency`, let the client submit more requests at a time, or use a faster device. If it is `own-maximum`, raise `max_iops` or `max_bytes_per_s`. Check LIMITED BY in `suimon qos flows`.";
    6205 MinimumMet "minimum_met" Info
        "A disk or policy gets its minimum again, or has requests for less than half of the time.";
    6206 PromiseForced "overcommit_forced" Warning
        "A forced change made the minimums on a store exceed 90 % of its capacity; they may not all be met at the same time. The text contains the sums. Lower minimums, or measure the capacity of the store.";
    6207 CapabilityLow "capacity_low" Warning
        "For 60 s a store delivered over 5 % less than the sum of its minimums requires, with requests queued; not all minimums can be met at once. Reduce the external load, or lower minimums.";
    6208 CapabilityEnough "capacity_sufficient" Info
        "A store delivers enough for the sum of its minimums again, or that sum was lowered.";
    6211 SharedMinimumUnmet "shared_minimum_unmet" Warning
        "For 60 s a disk on a shared store was delivered less than 95 % of its minimum, or of its demand if that is lower and the disk had no requests for part of the time. The field `cause` contains the cause: `not-admitted` (the minimums exceed the capacity), `other-nodes` (other nodes have not reduced their use yet), `own-node` (other disks of its node), `foreign-load` (external load of the store) or `store-latency` (the disk has too few requests in flight for the latency of the store). Further fields name the disks and nodes that exceed their own guarantee most. `suimon qos flows` shows all limiting factors in LIMITED BY; docs/reference/status.md lists the remedy of each. Otherwise lower minimums, or move disks to another store.";
    6212 SharedMinimumMet "shared_minimum_met" Info
        "A disk on a shared store gets its minimum again, or has less demand than that.";
    6213 SharedForeignLoad "shared_external_load" Warning
        "A shared store delivers less than its capacity: programs outside of the cluster load it, or it has become slower. Only the spare IOPS shrink; reservations stay. Find the external load, or measure the capacity again.";
    6214 SharedForeignLoadGone "shared_external_load_ended" Info
        "A shared store delivers its capacity again.";
    6215 SharedPromiseRefused "shared_reservation_refused" Warning
        "The minimums that a node requests on a shared store exceed the capacity left by other nodes; the node keeps its former reservation. Lower minimums, or move disks.";
    6216 SharedLeaseHeld "shared_lease_held" Info
        "This host holds a lease of spare IOPS on a shared store again.";
    6217 SharedLeaseLapsed "shared_lease_lapsed" Warning
        "The lease of spare IOPS on a shared store expired and was not renewed, while the demand of this host's disks exceeds their reservation: they are limited to the reservation. Check the leader and etcd (`suimon cluster status`).";
    6218 SharedClockSlow "shared_clock_slow" Warning
        "This host's clock runs over 1 % slower than that of a shared store's leader; the host uses no lease until both run at the same rate. Check whether the host was suspended, and its clock source.";
    6219 SharedStoreWrong "shared_store_mismatch" Error
        "The directory of a shared store is not the one that the cluster has recorded for this name, or it belongs to another cluster. The disks of this host keep their reserved IOPS there and get no leases of spare IOPS. The text contains the reason. Check `path` of the store, and that the shared file system is mounted there.";
    6220 SharedStoreRight "shared_store_matches" Info
        "The directory of a shared store is the one again that the cluster has recorded for this name.";
    6221 SharedPolicyInUse "shared_policy_in_use" Warning
        "A policy of the cluster was deleted while disks of a node use it. It stays in effect until these disks get another policy, or none. Set another policy for these disks, or create the policy again.";
    6222 SharedPolicyUnknown "shared_policy_unknown" Warning
        "Disks use a policy that the cluster does not have. Disks of an aggregated policy may be limited to 0 IOPS on shared stores: create the policy, or set another one.";
    6223 SharedStoreUnmeasured "shared_store_unmeasured" Warning
        "The capacity of a shared store with `capacity_iops = \"measure\"` was not measured on this host, which therefore cannot lead the store. If another node knows the capacity, its leader grants leases to this host, too. If no node knows it, there is no leader: after 5 s, the disks of a node without a reservation get 64 normalised IOPS together and no guarantees. A node with a reservation keeps it. Measure the capacity with `suimon store measure`, or set `capacity_iops` to a number.";
    6224 SharedStoreMeasured "shared_store_measured" Info
        "The capacity of a shared store is known on this host, which can lead the store.";
    6225 SharedPoliciesIgnored "shared_policies_ignored" Warning
        "The etcd of the cluster has more than 4096 shared policies, the most that a cluster can have. This host ignores the newest ones, whose limits are not in effect. Delete policies that no disk uses (`suimon qos policy delete`), or remove keys `policies/NAME` that another program has written from etcd; then restart the daemon.";
    6226 SharedPolicyRefused "shared_policy_refused" Warning
        "A shared policy of this host cannot be added to its cluster, which has 4096 shared policies, the most it can have, or whose nodes keep changing policies. If the policy is aggregated, its disks may be limited to 0 IOPS on shared stores. The text contains the reason. Delete policies of the cluster that no disk uses (`suimon qos policy delete`), or replace the policy by one without `shared`.";
    7001 VmCreated "vm_created" Info
        "A VM was created; it is not running.";
    7002 VmChanged "vm_changed" Info
        "A VM was changed; changes that do not apply to a running VM take effect at its next start.";
    7003 VmDeleted "vm_deleted" Info
        "A VM was deleted; it was not running.";
    7010 VmStarted "vm_started" Info
        "A VM was started.";
    7011 VmEnded "vm_ended" Info
        "A VM ended: its guest shut down, or the VM was stopped or killed on request.";
    7012 VmFailed "vm_failed" Error
        "A VM could not be started, or its QEMU process ended unexpectedly; the text contains the reason. Check `qemu.log` in the folder of the VM, and start the VM again.";
    7013 VmPaused "vm_paused" Info
        "The CPUs of a VM were paused.";
    7014 VmResumed "vm_resumed" Info
        "The CPUs of a VM were resumed.";
    7015 VmReset "vm_reset" Info
        "A VM was reset, by its guest or on request. At most one event in 10 s.";
    7016 VmFound "vm_adopted" Info
        "The daemon adopted a VM that continued to run while the daemon was restarted.";
    7017 VmLost "vm_not_responding" Error
        "The QEMU process of a VM exists but does not respond to the daemon, which retries (state `lost` in `suimon vm list`). Check the process and its log; `suimon vm kill` ends it.";
    7018 VmDevicePlugged "vm_device_plugged" Info
        "A NIC, disk or CPU was hot-plugged into a running VM.";
    7019 VmDeviceUnplugged "vm_device_unplugged" Info
        "The guest of a running VM released a NIC or disk, which was hot-unplugged.";
    7020 VmDeviceRefused "vm_device_refused" Warning
        "Hot-plug or hot-unplug of a NIC, disk or CPU failed; the text contains the reason. Stop and start the VM: the change takes effect at its next start.";
    7021 VmPanicked "vm_panicked" Error
        "The guest of a VM reported a kernel panic; its CPUs are stopped. Reset or kill the VM.";
    7022 VmFrozen "vm_frozen" Info
        "The guest agent of a VM froze the guest's file systems.";
    7023 VmThawed "vm_thawed" Info
        "The file systems of a VM's guest were thawed; the field `reason` says why: `request`, `timeout` (the time limit of the freeze) or `reset` (the VM was reset).";
    7024 VmNotThawed "vm_not_thawed" Error
        "The file systems of a VM's guest may be frozen and could not be thawed; the daemon retries. `suimon vm reset` restarts the guest.";
    7030 VmLeaves "vm_migration_started" Info
        "Migration of a VM to another node began; the VM runs here meanwhile.";
    7031 VmLeft "vm_migrated" Info
        "A VM migrated to another node and was removed from this host.";
    7032 VmStays "vm_migration_failed" Warning
        "Migration of a VM to another node failed, and the VM continues to run here. The text contains the reason. Remove the cause, and migrate the VM again.";
    7033 VmHandedOver "vm_handed_over" Warning
        "A VM was handed over to another node, which does not respond; the VM runs nowhere until it does. The daemon retries. Check the other node. If it will not return, make sure that it is switched off, otherwise the VM runs twice; then run `suimon node delete`: the VM resumes here.";
    7034 VmArrives "vm_incoming_migration_started" Info
        "Migration of a VM from another node began; its NICs and disks were created here (state `arriving` in `suimon vm list`).";
    7035 VmArrived "vm_incoming_migration_completed" Info
        "A VM migrated from another node and runs here.";
    7036 VmDidNotArrive "vm_incoming_migration_failed" Warning
        "Migration of a VM from another node failed. The NICs and disks created for it here were removed. The text contains the reason. Remove the cause, and migrate the VM again.";
    7037 VmWaitsForDisks "vm_waits_for_disks" Warning
        "A VM with `autostart` is not started until its disks are in service. The text names the disk and the reason; check that disk and its store.";
    8001 PowerPlanInEffect "power_plan_in_effect" Info
        "The settings of the selected power plan are in effect on all CPUs.";
    8002 PowerPlanIncomplete "power_plan_incomplete" Warning
        "Some settings of the selected power plan are not available on this host; the fields list up to 8 of them with the reason, `suimon power show` lists all. The part of the plan that concerns workers is in effect. Follow the reasons (`suimon power show`), or select a custom plan without these settings.";
    8003 PowerRestored "power_restored" Info
        "CPU settings that the daemon had changed were restored to their former values.";
    8004 PowerSettingLeft "power_setting_left" Warning
        "Another program changed CPU settings after the daemon did; the daemon does not restore them. Stop the other program; `suimon power set` then sets them again.";
    8005 PowerRestoreFailed "power_restore_failed" Error
        "CPU settings that the daemon had changed could not be restored; it retries when CPUs come online or the daemon starts. The fields list up to 8 files with the reason; `suimon power show` lists all files with their former values, which can be written by hand.";
    8006 PowerCpusChanged "power_cpus_changed" Info
        "CPUs came online or went offline; the power plan is applied to new ones.";
    9001 PfCreated "pf_created" Info
        "An SR-IOV adapter was created in the configuration.";
    9002 PfChanged "pf_changed" Info
        "The configuration of an SR-IOV adapter was changed.";
    9003 PfDeleted "pf_deleted" Info
        "An SR-IOV adapter was deleted from the configuration; its VFs stay as they are.";
    9004 PfFailed "pf_failed" Error
        "The configuration of an SR-IOV adapter could not be applied; the text contains the reason. Remove the cause; the daemon retries.";
    9005 PfRecovered "pf_recovered" Info
        "The configuration of an SR-IOV adapter that had failed is in effect again.";
    9006 VfsEnabled "vfs_enabled" Info
        "The number of VFs of an adapter was changed; the fields contain both numbers.";
    9007 VfSet "vf_set" Info
        "Settings of a VF were changed; the fields contain the new values.";
    9008 NicOnVf "nic_on_vf" Info
        "A VF was attached to the VM of a NIC; the NIC's traffic uses it.";
    9009 NicOnSynthetic "nic_on_switch" Info
        "The traffic of a NIC returned from its VF to the switch, on request; the guest has released the VF.";
    9010 NicLostVf "nic_lost_vf" Warning
        "The VF of a NIC failed or was removed; the NIC's traffic uses the switch. A VF is assigned to the NIC again 10 s after one becomes available. Check the adapter and the kernel log.";
    9011 NicWithoutVf "nic_without_vf" Warning
        "No VF is free for a NIC with an `iov_weight` above 0; its traffic uses the switch until one is free. Set `iov_weight` of this or of another NIC to 0, or add VFs with `suimon vf enable`, which requires that no VF of the adapter is in use.";
    9012 VfHeld "vf_held" Warning
        "A VF that was unplugged from a VM, or whose VM has ended, is not back at the host, and no NIC gets it: a process has it open, usually QEMU, or a driver of the host does not respond. The text contains the reason; the daemon retries. Check the kernel log; `suimon vm kill` ends QEMU.";
    9013 VfReturned "vf_returned" Info
        "A VF that event 9012 had reported was returned to the host, and can be assigned.";
}

#[cfg(test)]
#[path = "event_kinds_tests.rs"]
mod tests;
