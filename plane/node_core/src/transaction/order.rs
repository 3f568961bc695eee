//! Global order of the steps of a change.
//!
//! The resource kinds derive their steps independently. Each step states its [`ChangePhase`], and
//! the steps are executed in the order of the phases. The phases establish:
//! - Guests release a device before its connection is closed.
//! - Every holder of a name or file is closed before another device takes it.
//! - Adapters are configured before a device uses one of their virtual functions.
//! - Workers run before forwarding tables and devices refer to them. Unchanged ports keep their
//!   queues.
//! - The switch has a port before the port's device opens.
//! - Limits of disks are set before a disk that they guarantee IOPS to opens.
//! - Only the commit can fail after guests have released devices that are closed after it.
//!
//! The phases are preceded by the record of the intent, and followed by the commit and by the
//! closing of devices that are absent from the new state (`run.rs`).

/// Phase of a change. Steps are executed in ascending order of their phases, steps of one phase in
/// the order in which their resource kind derived them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangePhase {
    /// Folders of new VMs are created. They contain the sockets of the VMs' NICs and disks.
    CreateVms,
    /// Guests release devices that a later phase closes.
    ReleaseDevicesClosedBeforeCommit,
    /// Ports that hold acquired resources, or get another device, are closed.
    ClosePorts,
    /// Disks that hold acquired resources, or are opened with other properties, are closed.
    CloseDisks,
    /// Adapters with SR-IOV are configured.
    ConfigureAdapters,
    /// Workers are started and stopped.
    ChangeWorkers,
    /// Forwarding tables are published.
    PublishTables,
    /// Limits of stores, QoS policies and disks are set.
    SetDiskLimits,
    /// Devices of ports are changed in service.
    ChangePorts,
    /// Devices of ports are opened.
    OpenPorts,
    /// Forwarding tables are published with the MTU of uplinks that were opened or changed.
    PublishUplinkTables,
    /// Disks are changed in service.
    ChangeDisks,
    /// Disks are opened.
    OpenDisks,
    /// Guests release devices that are closed after the commit.
    ReleaseDevicesClosedAfterCommit,
}
