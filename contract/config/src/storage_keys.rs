//! Keys of stores, disks and QoS policies.

use crate::disk_config::SERIAL_BYTES_MAX;
use crate::key::{Key, QUEUE_COUNT, optional, optional_with_default, required};
use crate::{ChangeEffect, Form, ResourceKind};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const IOPS: Form = Form::Number { min: 1, max: 1_000_000_000 };
/// Capacity of a store: declared, or measured.
const CAPABILITY: Form = Form::NumberOrKeyword { min: 1, max: 1_000_000_000, keyword: "measure" };
const SECTOR: Form = Form::OneOfNumbers(&[512, 4096]);
/// Upper limit of a disk's size, above that of every format except raw.
const DISK_BYTES: Form = Form::Bytes { min: 512, max: 1 << 50, step: 512 };
/// Range common to all formats; another check applies the limits of the disk's format.
const BLOCK_BYTES: Form = Form::Bytes { min: 512 * KIB, max: 256 * MIB, step: 512 * KIB };

pub(crate) const STORE: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("path", Form::FilePath, ChangeEffect::Replace),
    optional("capacity_iops", CAPABILITY, ChangeEffect::Live),
    optional_with_default(
        "normalization_bytes",
        Form::Bytes { min: 512, max: MIB, step: 512 },
        ChangeEffect::Replace,
    ),
    optional_with_default("depth_max", Form::Number { min: 1, max: 1024 }, ChangeEffect::Replace),
    optional_with_default("shared", Form::Flag, ChangeEffect::Live),
    optional("fallback_iops", IOPS, ChangeEffect::Live),
    optional_with_default(
        "full_warning_percent",
        Form::Number { min: 1, max: 100 },
        ChangeEffect::Live,
    ),
];

const MIN_IOPS: Key = optional("min_iops", IOPS, ChangeEffect::Live);
const MAX_IOPS: Key = optional("max_iops", IOPS, ChangeEffect::Live);
const MAX_BYTES_PER_S: Key = optional(
    "max_bytes_per_s",
    Form::Bytes { min: 512, max: 1 << 40, step: 1 },
    ChangeEffect::Live,
);
const WEIGHT: Key =
    optional_with_default("weight", Form::Number { min: 1, max: 10_000 }, ChangeEffect::Live);
const BURST_IOPS: Key = optional("burst_iops", IOPS, ChangeEffect::Live);
const BURST_S: Key = optional("burst_s", Form::Number { min: 1, max: 3600 }, ChangeEffect::Live);

pub(crate) const QOS_POLICY: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    optional_with_default(
        "kind",
        Form::OneOfKeywords(&["dedicated", "aggregated"]),
        ChangeEffect::Live,
    ),
    optional_with_default("shared", Form::Flag, ChangeEffect::Live),
    MIN_IOPS,
    MAX_IOPS,
    MAX_BYTES_PER_S,
    WEIGHT,
    BURST_IOPS,
    BURST_S,
];

pub(crate) const DISK_QOS: &[Key] =
    &[MIN_IOPS, MAX_IOPS, MAX_BYTES_PER_S, WEIGHT, BURST_IOPS, BURST_S];

pub(crate) const DISK: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("store", Form::Name, ChangeEffect::Replace),
    optional("file", Form::StoreFile, ChangeEffect::Replace),
    required(
        "format",
        Form::OneOfKeywords(&["raw", "vhd", "vhdx", "pass-through"]),
        ChangeEffect::Replace,
    ),
    optional(
        "kind",
        Form::OneOfKeywords(&["fixed", "dynamic", "differencing"]),
        ChangeEffect::Replace,
    ),
    optional("size_bytes", DISK_BYTES, ChangeEffect::Live),
    optional("parent", Form::StoreFile, ChangeEffect::Replace),
    optional_with_default("read_only", Form::Flag, ChangeEffect::Replace),
    optional("serial", Form::Serial { max: SERIAL_BYTES_MAX }, ChangeEffect::Replace),
    optional_with_default("logical_sector", SECTOR, ChangeEffect::Replace),
    optional_with_default("physical_sector", SECTOR, ChangeEffect::Replace),
    optional("block_bytes", BLOCK_BYTES, ChangeEffect::Live),
    optional("qos_policy", Form::Name, ChangeEffect::Live),
    optional_with_default("qos", Form::Table(ResourceKind::DiskQos), ChangeEffect::Live),
    optional_with_default("on_full", Form::OneOfKeywords(&["wait", "error"]), ChangeEffect::Live),
    optional_with_default("full_wait_s", Form::Number { min: 0, max: 86_400 }, ChangeEffect::Live),
    optional_with_default(
        "controller",
        Form::OneOfKeywords(&["virtio", "ide", "sata"]),
        ChangeEffect::Replace,
    ),
    optional("vhost_user", Form::Table(ResourceKind::DiskVhostUser), ChangeEffect::Replace),
    optional("nbd", Form::Table(ResourceKind::DiskNbd), ChangeEffect::Live),
];

pub(crate) const DISK_VHOST_USER: &[Key] = &[
    required("socket", Form::UnixSocketPath, ChangeEffect::Replace),
    optional_with_default(
        "mode",
        Form::OneOfKeywords(&["server", "client"]),
        ChangeEffect::Replace,
    ),
    optional_with_default("queues", QUEUE_COUNT, ChangeEffect::Replace),
];

/// Maximum number of connections of NBD clients.
pub(crate) const NBD_CONNECTIONS: Form = Form::Number { min: 1, max: 16_384 };
/// Maximum buffer memory of connections of NBD clients: at least that of one connection.
pub(crate) const NBD_BUFFER: Form = Form::Bytes { min: MIB, max: 1 << 40, step: 1 };

/// Largest number of users, groups, names or addresses permitted by an NBD server.
const ACCESS_ENTRIES_MAX: usize = 64;

pub(crate) const DISK_NBD: &[Key] = &[
    optional("socket", Form::UnixSocketPath, ChangeEffect::Live),
    optional("users", Form::Accounts { max: ACCESS_ENTRIES_MAX }, ChangeEffect::Live),
    optional("groups", Form::Accounts { max: ACCESS_ENTRIES_MAX }, ChangeEffect::Live),
    optional("listen", Form::SocketAddress, ChangeEffect::Live),
    optional("tls_certificate", Form::FilePath, ChangeEffect::Live),
    optional("tls_key", Form::FilePath, ChangeEffect::Live),
    optional("tls_client_ca", Form::FilePath, ChangeEffect::Live),
    optional("tls_clients", Form::DnsNames { max: ACCESS_ENTRIES_MAX }, ChangeEffect::Live),
    optional("addresses", Form::IpNetworks { max: ACCESS_ENTRIES_MAX }, ChangeEffect::Live),
    optional_with_default("plaintext", Form::Flag, ChangeEffect::Live),
    optional("connections_max", NBD_CONNECTIONS, ChangeEffect::Live),
    optional("buffer_max_bytes", NBD_BUFFER, ChangeEffect::Live),
];
