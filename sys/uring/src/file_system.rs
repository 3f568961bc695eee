//! Magic numbers of file systems (`statfs(2)`).

/// tmpfs: in memory, supports holes.
pub(crate) const TMPFS: u64 = 0x0102_1994;
/// ramfs: in memory, without limits on space.
pub(crate) const RAMFS: u64 = 0x8584_58f6;
/// XFS: on a block device, supports holes.
pub(crate) const XFS: u64 = 0x5846_5342;
/// Btrfs: on block devices, supports holes.
pub(crate) const BTRFS: u64 = 0x9123_683e;
/// FUSE and virtiofs: a process or the host serves the files.
pub(crate) const FUSE: u64 = 0x6573_5546;
