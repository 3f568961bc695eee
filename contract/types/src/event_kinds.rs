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

            /// Returns the kind with the number `id`; `None` if there is none.
            pub const fn from_id(id: u32) -> Option<Self> {
                match id { $($id => Some(Self::$kind),)* _ => None }
            }
        }
    };
}

catalogue! {
    1001 DaemonStarted "daemon_started" Info
        "The daemon has started and serves its API.";
    1002 DaemonStopping "daemon_stopping" Info
        "The daemon was asked to stop and takes its ports down.";
    1003 DesiredStateChanged "desired_state_changed" Info
        "Desired state has changed and is stored.";
    1004 ChangeRolledBack "change_rolled_back" Error
        "A change failed; everything is as it was before.";
    1005 StoreOpened "store_opened" Info
        "Desired state was read from the state directory, after a crash too.";
    1010 ConfinementInEffect "confinement_in_effect" Info
        "The daemon and its processors have given up what they do not need; the fields say what is in effect.";
    1011 ConfinementIncomplete "confinement_incomplete" Warning
        "The daemon is not confined, or not fully: it was started so, or the kernel lacks something.";
    1012 SystemCallRefused "system_call_refused" Error
        "A thread of the daemon tried a system call that it never needs: it has a defect or is in somebody else's hand. At most one in 10 s.";
    1101 NodeCreated "node_created" Info
        "Another node was made known, to which VMs can go.";
    1102 NodeChanged "node_changed" Info
        "It was changed how another node is reached.";
    1103 NodeDeleted "node_deleted" Info
        "Another node is known no more.";
    1110 NodeDrained "node_drained" Info
        "The host is drained: no VM comes to it, and those that run on it go to other nodes.";
    1111 NodeEmptied "node_emptied" Info
        "A host that is drained has no VM left that runs.";
    1112 NodeNotEmptied "node_not_emptied" Warning
        "VMs run still on a host that is drained; the event says which, and why.";
    1113 NodeUndrained "node_undrained" Info
        "The host is not drained any more: VMs can come to it.";
    1201 ClusterJoined "cluster_joined" Info
        "The host is a node of the cluster: its name there is its own, and etcd has its record.";
    1202 ClusterLeft "cluster_left" Info
        "The host is not a node of the cluster any more; the fields say whether what was reserved for it was given back.";
    1203 ClusterUnreachable "cluster_unreachable" Warning
        "The cluster's etcd does not answer. The host keeps to what is reserved for it once its leases have ended.";
    1204 ClusterReachable "cluster_reachable" Info
        "The cluster's etcd answers again.";
    1205 ClusterRefused "cluster_refused" Error
        "The host cannot be the node that it is to be: another host has that name, or etcd refuses it; it is tried again.";
    1210 ClusterLeads "cluster_leads" Info
        "This node was elected to divide a shared store among nodes.";
    1211 ClusterLeadLost "cluster_lead_lost" Info
        "This node does not divide a shared store among nodes any more.";
    1212 NodeSilent "node_silent" Warning
        "A node with disks on a shared store says nothing any more. What is reserved for it stays its own.";
    1213 NodeOfOtherVersion "node_of_other_version" Warning
        "A node speaks another version of the cluster's language, or counts operations otherwise. It is given nothing, and keeps what is reserved for it.";
    1214 NodeUnaccounted "node_unaccounted" Warning
        "A node has reserved what nobody knows to have given it. It is counted from now on.";
    2001 SwitchCreated "switch_created" Info
        "A switch was made.";
    2002 SwitchChanged "switch_changed" Info
        "A switch was changed while its traffic went on.";
    2003 SwitchDeleted "switch_deleted" Info
        "A switch was deleted.";
    2004 StormLimitReached "storm_limit_reached" Warning
        "A port floods more frames than `storm_limit_fps` allows; the rest is dropped. At most one per port in 10 s.";
    3001 NicCreated "nic_created" Info
        "A NIC was made.";
    3002 NicChanged "nic_changed" Info
        "A NIC was changed while its traffic went on.";
    3003 NicDeleted "nic_deleted" Info
        "A NIC was deleted.";
    3004 NicConnected "nic_connected" Info
        "A VM connected to a NIC's socket.";
    3005 NicDisconnected "nic_disconnected" Warning
        "The VM is gone from a NIC's socket.";
    3006 NicDriverReady "nic_driver_ready" Info
        "The guest's driver has agreed on features and its queues run.";
    3007 NicProtocolViolation "nic_protocol_violation" Error
        "The guest or VMM broke the protocol; its own queue or connection is stopped.";
    3008 NicFailed "nic_failed" Error
        "A NIC is not as desired; the daemon tries again.";
    3009 NicRecovered "nic_recovered" Info
        "A NIC that had failed is as desired again.";
    3010 NicAddressRefused "nic_address_refused" Warning
        "A port sent from an address that is not its own, or that belongs to another NIC; the frames are dropped. The subject is the port that sent them. At most one per port in 10 s.";
    3011 CaptureStarted "capture_started" Info
        "A capture of a port's frames began.";
    3012 CaptureStopped "capture_stopped" Info
        "A capture ended.";
    3013 NicAddressMoved "nic_address_moved" Warning
        "A learned address was seen on another port than before. The subject is the new port, `from` the port before. At most one per port in 10 s.";
    3014 NicAddressBound "nic_address_bound" Info
        "The first source address of a guest was bound to its NIC, which has no `mac`: other NICs may not send from it.";
    4001 UplinkCreated "uplink_created" Info
        "An uplink was made.";
    4002 UplinkChanged "uplink_changed" Info
        "An uplink was changed while its traffic went on.";
    4003 UplinkDeleted "uplink_deleted" Info
        "An uplink was deleted.";
    4004 UplinkLinkUp "uplink_link_up" Info
        "An uplink's device has carrier.";
    4005 UplinkLinkDown "uplink_link_down" Warning
        "An uplink's device lost its carrier.";
    4006 UplinkFailed "uplink_failed" Error
        "An uplink is not as desired; the daemon tries again.";
    4007 UplinkRecovered "uplink_recovered" Info
        "An uplink that had failed is as desired again.";
    4101 TeamCreated "team_created" Info
        "A team was made.";
    4102 TeamChanged "team_changed" Info
        "A team was changed while its traffic went on.";
    4103 TeamDeleted "team_deleted" Info
        "A team was deleted.";
    4104 TeamUp "team_up" Info
        "As many members of a team can be used as `min_links` asks for.";
    4105 TeamDown "team_down" Error
        "Fewer members of a team can be used than `min_links` asks for; it carries nothing.";
    4106 TeamMemberUsable "team_member_usable" Info
        "A member of a team can be used, for the first time or again.";
    4107 TeamMemberFailed "team_member_failed" Warning
        "A member of a team can no longer be used; the others carry its traffic.";
    4108 TeamStandbyTookOver "team_standby_took_over" Warning
        "The standby of a team is used in place of a member that cannot be.";
    4109 TeamStandbyReleased "team_standby_released" Info
        "The standby of a team is not used any more.";
    4110 TeamPrimaryChanged "team_primary_changed" Info
        "Another member of a team receives where one does.";
    4111 TeamPrimaryRestored "team_primary_restored" Info
        "The configured primary of a team receives again.";
    4112 LacpOutOfSync "lacp_out_of_sync" Warning
        "One end of a team's link has not come in sync by LACP for 60 s; the fields say which.";
    4113 LacpInSync "lacp_in_sync" Info
        "An end of a team's link that was out of sync is in sync again.";
    4114 LacpLooped "lacp_looped" Warning
        "The link of a team's member leads back to this host; the member is not used.";
    4115 LacpLoopEnded "lacp_loop_ended" Info
        "The link of a team's member leads back to this host no more.";
    4116 LacpPartnerChanged "lacp_partner_changed" Warning
        "The LACP partner on the link of a team's member changed: another system (cables were changed, or LACPDUs are forged), or another key, port or priority of the same system (its configuration was changed). At most one per member in 10 s.";
    5001 QueueMoved "queue_moved" Info
        "A queue was handed over to another processor.";
    5002 ProcessorStarted "processor_started" Info
        "A processor runs on its CPU.";
    5003 ProcessorStopped "processor_stopped" Info
        "A processor has given its queues away and stopped.";
    5004 QueueMoveMeasured "queue_move_measured" Info
        "What a move that VMQ decided did to the loads of both processors; the fields have what was expected, too.";
    5005 QueueMoveFailed "queue_move_failed" Warning
        "A queue could not be moved to where VMQ wanted it; it stays.";
    5006 WorkerStalled "worker_stalled" Error
        "A worker has not finished a round for 5 s: the queues that it owns are not served. The event names the device that it serves, if that is known.";
    5007 WorkerResumed "worker_resumed" Info
        "A worker that was stalled serves its queues again.";
    6001 StoreCreated "store_created" Info
        "A store was made known.";
    6002 StoreChanged "store_changed" Info
        "A store was changed while its disks were in use.";
    6003 StoreDeleted "store_deleted" Info
        "A store is known no more; its files stay.";
    6004 StoreFailed "store_failed" Error
        "A store is not as desired; the daemon tries again.";
    6005 StoreRecovered "store_recovered" Info
        "A store that had failed is as desired again.";
    6006 StoreMeasured "store_measured" Info
        "It was measured what a store can do; the fields have the figures, and whether what is promised fits.";
    6101 DiskCreated "disk_created" Info
        "A disk was made known and opened.";
    6102 DiskChanged "disk_changed" Info
        "A disk was changed while it was in use.";
    6103 DiskDeleted "disk_deleted" Info
        "A disk was deleted; the fields say whether its file was, too.";
    6104 DiskConnected "disk_connected" Info
        "A VM connected to a disk's socket.";
    6105 DiskDisconnected "disk_disconnected" Warning
        "The VM is gone from a disk's socket.";
    6106 DiskDriverReady "disk_driver_ready" Info
        "The guest's driver has agreed on features and the disk's queues run.";
    6107 DiskProtocolViolation "disk_protocol_violation" Error
        "The guest, VMM or NBD client broke the protocol; its own queue or connection is stopped.";
    6108 DiskFailed "disk_failed" Error
        "A disk is not as desired; the daemon tries again.";
    6109 DiskRecovered "disk_recovered" Info
        "A disk that had failed is as desired again.";
    6110 DiskIoFailed "disk_io_failed" Error
        "The store failed a request of a disk, and the guest was told so; the fields say what and where. At most one per disk in 10 s.";
    6111 DiskFileMade "disk_file_made" Info
        "A disk's file was not there and was made.";
    6112 DiskResized "disk_resized" Info
        "A disk has grown; its guest was told.";
    6113 DiskChecked "disk_checked" Info
        "A disk's file was checked; the fields say what was found.";
    6114 NbdClientRefused "nbd_client_refused" Warning
        "An NBD client was not let in; the fields say who and why.";
    6115 DiskNotOffered "disk_not_offered" Error
        "A disk cannot be offered to NBD clients; it works otherwise.";
    6116 DiskStalled "disk_stalled" Error
        "The store has not answered a disk's requests for 5 s; they wait, and nothing else does.";
    6117 DiskAnswered "disk_answered" Info
        "The store answers the requests of a disk that stalled.";
    6118 DiskOpeningStalled "disk_opening_stalled" Error
        "The store did not answer while a disk was being opened; the disk is opened when it does, and nothing else waits for it.";
    6119 DiskQueueFailed "disk_queue_failed" Error
        "The host cannot serve a queue of a VM's disk or the connection of an NBD client: descriptors or memory are short. It was given up; others go on.";
    6120 DiskWorkResumed "disk_work_resumed" Info
        "Work on a disk goes on in which a daemon before this one has ended.";
    6121 DiskWorkGivenUp "disk_work_given_up" Warning
        "Work on a disk in which a daemon before this one has ended does not go on; what it had made is gone, the disk is as before.";
    6122 DiskHasManyLayers "disk_has_many_layers" Warning
        "A disk has 48 files or more, its own and its parents'; it may have 64, after which there is no snapshot of it.";
    6123 DiskFlushFailed "disk_flush_failed" Error
        "A flush of a disk failed, so that writes since the last flush may be lost: its writes and flushes fail until it is reopened (`suimon disk reopen`). Reads continue.";
    6140 ImageRepaired "image_repaired" Info
        "The metadata of an image file was repaired; the former metadata is in a file beside it.";
    6141 ImageRelinked "image_relinked" Info
        "The recorded place of an image's parent was changed; the former metadata is in a file beside it.";
    6150 DiskFull "disk_full" Error
        "The store has no space for requests of a disk. They are queued, or fail, as `on_full` says; requests to allocated blocks go on.";
    6151 DiskHasSpace "disk_has_space" Info
        "A disk's requests do not find the store full any more: one that had found no space has succeeded, or none has found the store full for 10 s, as the text says.";
    6152 StoreNearlyFull "store_nearly_full" Warning
        "More of a store is used than its `full_warning_percent`.";
    6153 StoreHasSpace "store_has_space" Info
        "Less of a store is used than its `full_warning_percent` again.";
    6154 VmPausedForSpace "vm_paused_for_space" Error
        "A VM is paused because the store of one of its IDE or SATA disks is full; it goes on when there is space.";
    6155 VmContinuedWithSpace "vm_continued_with_space" Info
        "A VM that was paused because a store was full has run again for 10 s.";
    6201 QosPolicyCreated "qos_policy_created" Info
        "A QoS policy was made.";
    6202 QosPolicyChanged "qos_policy_changed" Info
        "A QoS policy was changed; its disks have the new limits.";
    6203 QosPolicyDeleted "qos_policy_deleted" Info
        "A QoS policy was deleted.";
    6204 MinimumUnmet "minimum_unmet" Warning
        "A disk or policy that had enough to do has got less than its minimum for 60 s; the fields name the cause.";
    6205 MinimumMet "minimum_met" Info
        "A disk or policy whose minimum was not met gets it again.";
    6206 PromiseForced "promise_forced" Warning
        "More was promised than a store can keep, because the change was forced; the fields have the arithmetic.";
    6207 CapabilityLow "capability_low" Warning
        "For 60 s a store did less by more than 5 %, while requests waited for it, than what is promised needs; not all minimums can be kept at once.";
    6208 CapabilityEnough "capability_enough" Info
        "A store that did too little for what is promised does enough again, or less is promised.";
    6211 SharedMinimumUnmet "shared_minimum_unmet" Warning
        "A disk on a shared store has not got what its minimum entitles it to for a minute; the fields name who gets more than it is entitled to, on which node, and why.";
    6212 SharedMinimumMet "shared_minimum_met" Info
        "A minimum on a shared store that was not met is met again, or not asked for.";
    6213 SharedForeignLoad "shared_foreign_load" Warning
        "A shared store does less than it can: something loads it that the cluster does not know, or it has become slower. What is spare shrinks, what is reserved does not.";
    6214 SharedForeignLoadGone "shared_foreign_load_gone" Info
        "A shared store that did less than it can does it again.";
    6215 SharedPromiseRefused "shared_promise_refused" Warning
        "A node asks for more minimums on a shared store than all nodes together may be promised; it keeps what it had.";
    6216 SharedLeaseHeld "shared_lease_held" Info
        "This host has a share of what is spare on a shared store again, after none came in time.";
    6217 SharedLeaseLapsed "shared_lease_lapsed" Warning
        "This host's disks want more of a shared store than is reserved for them, and what was lent has ended without another grant: they keep to what is reserved.";
    6218 SharedClockSlow "shared_clock_slow" Warning
        "This host's clock is slower than that of a shared store's leader by more than may be; it uses no share of what is spare until both agree.";
    6219 SharedStoreWrong "shared_store_wrong" Error
        "A shared store is not the one that the cluster has by this name, or another cluster has it: this host takes no part in it and keeps to what was reserved for it.";
    6220 SharedStoreRight "shared_store_right" Info
        "A shared store that was not the cluster's is it again.";
    6221 SharedPolicyInUse "shared_policy_in_use" Warning
        "A policy of the cluster was deleted while disks of a node have it: it stays in force until they have another.";
    6222 SharedPolicyUnknown "shared_policy_unknown" Warning
        "Disks have a policy that the cluster does not have, or has no more: those of an aggregated one may do nothing on shared stores.";
    7001 VmCreated "vm_created" Info
        "A VM was made; it does not run yet.";
    7002 VmChanged "vm_changed" Info
        "A VM's configuration was changed; what does not change while it runs holds from its next start on.";
    7003 VmDeleted "vm_deleted" Info
        "A VM was deleted; it did not run.";
    7010 VmStarted "vm_started" Info
        "A VM was started.";
    7011 VmEnded "vm_ended" Info
        "A VM has ended: its guest turned itself off, or it was stopped or killed on request.";
    7012 VmFailed "vm_failed" Error
        "A VM could not be started, or its process has ended by itself; the fields say how.";
    7013 VmPaused "vm_paused" Info
        "A VM's CPUs stand still.";
    7014 VmResumed "vm_resumed" Info
        "A VM's CPUs run again.";
    7015 VmReset "vm_reset" Info
        "A VM was started anew, by its guest or on request. At most one in 10 s.";
    7016 VmFound "vm_found" Info
        "A daemon that started has found a VM again that went on meanwhile.";
    7017 VmLost "vm_lost" Error
        "A VM's process is there and does not answer the daemon; it is asked again.";
    7018 VmDevicePlugged "vm_device_plugged" Info
        "A NIC, disk or CPU was plugged into a VM that runs.";
    7019 VmDeviceUnplugged "vm_device_unplugged" Info
        "A VM that runs has let go of a NIC or disk.";
    7020 VmDeviceRefused "vm_device_refused" Warning
        "A NIC, disk or CPU could not be plugged into a VM that runs, or taken away; it is so from its next start on.";
    7021 VmPanicked "vm_panicked" Error
        "A VM's guest has told of its panic and stands still.";
    7022 VmFrozen "vm_frozen" Info
        "The agent of a VM's guest holds writes to the guest's file systems.";
    7023 VmThawed "vm_thawed" Info
        "A VM's guest writes to its file systems again; the fields say whether that was asked for.";
    7024 VmNotThawed "vm_not_thawed" Error
        "A VM's guest holds writes to its file systems and could not be told to go on; it is tried again.";
    7030 VmLeaves "vm_leaves" Info
        "A VM is being moved to another node, where it can come.";
    7031 VmLeft "vm_left" Info
        "A VM has moved to another node and is not this host's any more.";
    7032 VmStays "vm_stays" Warning
        "A VM that was to move to another node goes on here; the fields say why.";
    7033 VmHandedOver "vm_handed_over" Warning
        "A VM stands still, and another node that was told to run it does not answer; it is asked again.";
    7034 VmArrives "vm_arrives" Info
        "A VM is coming from another node; what it needs is made.";
    7035 VmArrived "vm_arrived" Info
        "A VM that came from another node runs here.";
    7036 VmDidNotArrive "vm_did_not_arrive" Warning
        "A VM that was to come from another node does not; what was made for it is removed.";
    7037 VmWaitsForDisks "vm_waits_for_disks" Warning
        "A VM that starts with the host waits until a disk of its is in service; the fields say which and why it is not.";
    8001 PowerPlanInEffect "power_plan_in_effect" Info
        "The power plan that is wanted is in effect on all CPUs.";
    8002 PowerPlanIncomplete "power_plan_incomplete" Warning
        "Some of what the power plan asks for cannot be had; the fields say what and why. The data plane's share is in effect.";
    8003 PowerRestored "power_restored" Info
        "Settings of CPUs that the daemon had changed are as they were before.";
    8004 PowerSettingLeft "power_setting_left" Warning
        "Somebody else has changed a setting of CPUs since the daemon did; it is left as it is.";
    8005 PowerRestoreFailed "power_restore_failed" Error
        "A setting of CPUs that the daemon had changed could not be put back; it is tried again when CPUs come online or the daemon starts.";
    8006 PowerCpusChanged "power_cpus_changed" Info
        "CPUs came online or went offline; the power plan is applied to those that came.";
    9001 PfCreated "pf_created" Info
        "It was made known how an adapter with SR-IOV is to be.";
    9002 PfChanged "pf_changed" Info
        "What is desired of an adapter with SR-IOV was changed.";
    9003 PfDeleted "pf_deleted" Info
        "Nothing is desired of an adapter with SR-IOV any more; its VFs stay as they are.";
    9004 PfFailed "pf_failed" Error
        "An adapter with SR-IOV is not as desired; the daemon tries again.";
    9005 PfRecovered "pf_recovered" Info
        "An adapter with SR-IOV that was not as desired is so again.";
    9006 VfsEnabled "vfs_enabled" Info
        "An adapter has another number of VFs; the fields have both.";
    9007 VfSet "vf_set" Info
        "A VF was set up; the fields have what was read back.";
    9008 NicOnVf "nic_on_vf" Info
        "A VM has the VF that one of its NICs was given; the NIC's frames take it.";
    9009 NicOnSynthetic "nic_on_synthetic" Info
        "A NIC's frames take the switch again, because that was asked for; its VF is free.";
    9010 NicLostVf "nic_lost_vf" Warning
        "A NIC could not keep or use its VF; its frames take the switch, and it is given one again after a while.";
    9011 NicWithoutVf "nic_without_vf" Warning
        "A NIC that is to have a VF stays on the switch: none is free. It gets one as soon as one is.";
}

#[cfg(test)]
mod tests {
    use super::EventKind;

    #[test]
    fn numbers_and_names_are_unique_and_lead_back() {
        let ids: Vec<u32> = EventKind::ALL.iter().map(|kind| kind.id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        let mut names: Vec<_> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EventKind::ALL.len());
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_id(kind.id()), Some(*kind));
        }
        assert_eq!(EventKind::from_id(1000), None);
    }

    /// Fails if a published number changes its meaning.
    #[test]
    fn the_catalogue_is_as_published() {
        let lines: Vec<_> = EventKind::ALL
            .iter()
            .map(|kind| format!("{} {} {:?}", kind.id(), kind.name(), kind.severity()))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
