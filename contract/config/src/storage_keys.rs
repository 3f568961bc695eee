//! Keys of stores, disks and QoS policies.

use crate::disk_config::SERIAL_BYTES_MAX;
use crate::key::{Key, QUEUES, defaulted, optional, required};
use crate::{Effect, Form, Kind};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const IOPS: Form = Form::Number { least: 1, most: 1_000_000_000 };
/// Capacity of a store: declared, or measured.
const CAPABILITY: Form = Form::NumberOr { least: 1, most: 1_000_000_000, word: "measure" };
const SECTOR: Form = Form::OneOfNumbers(&[512, 4096]);
/// Upper limit of a disk's size, above that of every format except raw.
const DISK_BYTES: Form = Form::Bytes { least: 512, most: 1 << 50, step: 512 };
/// Range common to all formats; another check applies the limits of the disk's format.
const BLOCK_BYTES: Form = Form::Bytes { least: 512 * KIB, most: 256 * MIB, step: 512 * KIB };

pub(crate) const STORE: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    required("path", Form::FilePath, Effect::Replace),
    optional("capacity_iops", CAPABILITY, Effect::Live),
    defaulted(
        "normalization_bytes",
        Form::Bytes { least: 512, most: MIB, step: 512 },
        Effect::Replace,
    ),
    defaulted("depth_max", Form::Number { least: 1, most: 1024 }, Effect::Replace),
    defaulted("shared", Form::Flag, Effect::Live),
    optional("fallback_iops", IOPS, Effect::Live),
    defaulted("full_warning_percent", Form::Number { least: 1, most: 100 }, Effect::Live),
];

const MIN_IOPS: Key = optional("min_iops", IOPS, Effect::Live);
const MAX_IOPS: Key = optional("max_iops", IOPS, Effect::Live);
const MAX_BYTES_PER_S: Key =
    optional("max_bytes_per_s", Form::Bytes { least: 512, most: 1 << 40, step: 1 }, Effect::Live);
const WEIGHT: Key = defaulted("weight", Form::Number { least: 1, most: 10_000 }, Effect::Live);
const BURST_IOPS: Key = optional("burst_iops", IOPS, Effect::Live);
const BURST_S: Key = optional("burst_s", Form::Number { least: 1, most: 3600 }, Effect::Live);

pub(crate) const QOS_POLICY: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    defaulted("kind", Form::OneOf(&["dedicated", "aggregated"]), Effect::Live),
    defaulted("shared", Form::Flag, Effect::Live),
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
    required("name", Form::Name, Effect::Identity),
    required("store", Form::Name, Effect::Replace),
    optional("file", Form::StoreFile, Effect::Replace),
    required("format", Form::OneOf(&["raw", "vhd", "vhdx", "pass-through"]), Effect::Replace),
    optional("kind", Form::OneOf(&["fixed", "dynamic", "differencing"]), Effect::Replace),
    optional("size_bytes", DISK_BYTES, Effect::Live),
    optional("parent", Form::StoreFile, Effect::Replace),
    defaulted("read_only", Form::Flag, Effect::Replace),
    optional("serial", Form::Serial { most: SERIAL_BYTES_MAX }, Effect::Replace),
    defaulted("logical_sector", SECTOR, Effect::Replace),
    defaulted("physical_sector", SECTOR, Effect::Replace),
    optional("block_bytes", BLOCK_BYTES, Effect::Live),
    optional("qos_policy", Form::Name, Effect::Live),
    defaulted("qos", Form::Table(Kind::DiskQos), Effect::Live),
    defaulted("on_full", Form::OneOf(&["wait", "error"]), Effect::Live),
    defaulted("full_wait_s", Form::Number { least: 0, most: 86_400 }, Effect::Live),
    defaulted("controller", Form::OneOf(&["virtio", "ide", "sata"]), Effect::Replace),
    optional("vhost_user", Form::Table(Kind::DiskVhostUser), Effect::Replace),
    optional("nbd", Form::Table(Kind::DiskNbd), Effect::Live),
];

pub(crate) const DISK_VHOST_USER: &[Key] = &[
    required("socket", Form::UnixSocketPath, Effect::Replace),
    defaulted("mode", Form::OneOf(&["server", "client"]), Effect::Replace),
    defaulted("queues", QUEUES, Effect::Replace),
];

/// Maximum number of connections of NBD clients.
pub(crate) const NBD_CONNECTIONS: Form = Form::Number { least: 1, most: 16_384 };
/// Maximum buffer memory of connections of NBD clients: at least that of one connection.
pub(crate) const NBD_BUFFER: Form = Form::Bytes { least: MIB, most: 1 << 40, step: 1 };

/// Largest number of users, groups, names or addresses permitted by an NBD server.
const ACCESS_ENTRIES_MAX: usize = 64;

pub(crate) const DISK_NBD: &[Key] = &[
    optional("socket", Form::UnixSocketPath, Effect::Live),
    optional("users", Form::Accounts { most: ACCESS_ENTRIES_MAX }, Effect::Live),
    optional("groups", Form::Accounts { most: ACCESS_ENTRIES_MAX }, Effect::Live),
    optional("listen", Form::SocketAddress, Effect::Live),
    optional("tls_certificate", Form::FilePath, Effect::Live),
    optional("tls_key", Form::FilePath, Effect::Live),
    optional("tls_client_ca", Form::FilePath, Effect::Live),
    optional("tls_clients", Form::DnsNames { most: ACCESS_ENTRIES_MAX }, Effect::Live),
    optional("addresses", Form::Networks { most: ACCESS_ENTRIES_MAX }, Effect::Live),
    defaulted("plaintext", Form::Flag, Effect::Live),
    optional("connections_max", NBD_CONNECTIONS, Effect::Live),
    optional("buffer_max_bytes", NBD_BUFFER, Effect::Live),
];
