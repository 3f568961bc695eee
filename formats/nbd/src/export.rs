//! Exports: properties of a disk as presented to NBD clients.

use crate::export_error::ExportError;
use crate::flags::TransmissionFlags;
use crate::framing::Framing;
use crate::header::PAYLOAD_BYTES_MAX;
use crate::text::STRING_BYTES_MAX;

/// Maximum size of an export in bytes; clients use signed 64-bit offsets.
pub const EXPORT_BYTES_MAX: u64 = i64::MAX as u64;
/// Largest permitted minimum block size in bytes (section "Size constraints").
const BLOCK_BYTES_MAX: u32 = 1 << 16;
/// Smallest permitted preferred block size in bytes; also the minimum block size that clients
/// assume if they do not request block sizes (section "Size constraints").
const SECTOR_BYTES: u32 = 512;

/// Block sizes of an export in bytes (section "Size constraints").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Minimum block size, which divides all offsets and lengths: a power of two, 1 to 65536.
    pub min: u32,
    /// Preferred block size for efficient requests: a power of two, at least `min` and at least
    /// 512.
    pub preferred: u32,
    /// Maximum length of reads and writes: a multiple of `min`, from `preferred` to
    /// [`PAYLOAD_BYTES_MAX`].
    pub payload_max: u32,
}

impl Default for BlockSizes {
    /// Returns the block sizes that apply if none are negotiated (section "Size constraints").
    fn default() -> Self {
        Self { min: 1, preferred: 4096, payload_max: PAYLOAD_BYTES_MAX }
    }
}

/// Optional features of an export. Requests for features not offered are rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// True if the export is read-only: writes, trims and zeroing are rejected, and the latter two
    /// not offered.
    pub read_only: bool,
    /// True if flushes are supported (`NBD_CMD_FLUSH`).
    pub flush: bool,
    /// True if single writes can be made durable (`NBD_CMD_FLAG_FUA`).
    pub fua: bool,
    /// True if the disk is a rotating medium (`NBD_FLAG_ROTATIONAL`).
    pub rotational: bool,
    /// True if discards are supported (`NBD_CMD_TRIM`).
    pub trim: bool,
    /// True if zeroing without transfer of zeroes is supported (`NBD_CMD_WRITE_ZEROES`).
    pub write_zeroes: bool,
    /// True if clients may request that slow zeroing fails immediately (`NBD_CMD_FLAG_FAST_ZERO`).
    pub fast_zero: bool,
    /// True if several connections have a coherent view of the disk: data flushed by one is visible
    /// to all (`NBD_FLAG_CAN_MULTI_CONN`).
    pub multi_conn: bool,
    /// True if prefetch hints are accepted (`NBD_CMD_CACHE`).
    pub cache: bool,
    /// True if allocation status is available (`base:allocation`).
    pub allocation_status: bool,
}

/// Unvalidated properties of an export; [`Export::new`] validates them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSpec {
    /// Export name that clients request: at most [`STRING_BYTES_MAX`] bytes, no NUL. May be empty.
    pub name: String,
    /// Human-readable description; same limits as the name.
    pub description: String,
    /// Size in bytes: a multiple of the minimum block size, at most [`EXPORT_BYTES_MAX`].
    pub size: u64,
    /// Block sizes that requests must respect.
    pub block_sizes: BlockSizes,
    /// Features that the export offers.
    pub features: Features,
}

/// Export with validated, consistent properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export(ExportSpec);

impl ExportSpec {
    /// Returns the properties of a disk with several connections, flushes, discards, zeroing and
    /// allocation status. `size` and `sector_bytes` are in bytes; the sector size is the minimum
    /// block size.
    #[must_use]
    pub fn for_disk(name: String, size: u64, sector_bytes: u32, read_only: bool) -> Self {
        Self {
            name,
            description: String::new(),
            size,
            block_sizes: BlockSizes { min: sector_bytes, ..BlockSizes::default() },
            features: Features {
                read_only,
                flush: true,
                fua: true,
                rotational: false,
                trim: true,
                write_zeroes: true,
                fast_zero: true,
                multi_conn: true,
                cache: false,
                allocation_status: true,
            },
        }
    }
}

impl Export {
    /// Validates the properties of an export.
    ///
    /// # Errors
    ///
    /// The first invalid property.
    pub fn new(spec: ExportSpec) -> Result<Self, ExportError> {
        check_text("name", &spec.name)?;
        check_text("description", &spec.description)?;
        let BlockSizes { min, preferred, payload_max } = spec.block_sizes;
        if !min.is_power_of_two() || min > BLOCK_BYTES_MAX {
            return Err(ExportError::BlockMin { found: min, max: BLOCK_BYTES_MAX });
        }
        let lowest = min.max(SECTOR_BYTES);
        if !preferred.is_power_of_two() || preferred < lowest {
            return Err(ExportError::BlockPreferred { found: preferred, min: lowest });
        }
        if payload_max < preferred || payload_max > PAYLOAD_BYTES_MAX || payload_max % min != 0 {
            return Err(ExportError::PayloadMax {
                found: payload_max,
                min: preferred,
                max: PAYLOAD_BYTES_MAX,
                block_min: min,
            });
        }
        if spec.size > EXPORT_BYTES_MAX {
            return Err(ExportError::SizeTooLarge { found: spec.size, max: EXPORT_BYTES_MAX });
        }
        if spec.size % u64::from(min) != 0 {
            return Err(ExportError::SizeUnaligned { found: spec.size, block_min: min });
        }
        if spec.features.fast_zero && !spec.features.write_zeroes {
            return Err(ExportError::FastZeroWithoutZero);
        }
        Ok(Self(spec))
    }

    /// Returns the name that clients request.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the human-readable description; may be empty.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// Returns the size of the export in bytes.
    pub const fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns the block sizes that requests must respect.
    pub const fn block_sizes(&self) -> BlockSizes {
        self.0.block_sizes
    }

    /// Returns the features that the export offers.
    pub const fn features(&self) -> Features {
        self.0.features
    }

    /// Returns true if the minimum block size exceeds 512 bytes, the value that clients assume if
    /// they do not request block sizes (section "Size constraints"). Such clients cannot use the
    /// export.
    pub const fn requires_block_sizes(&self) -> bool {
        self.0.block_sizes.min > SECTOR_BYTES
    }

    /// Returns the transmission flags for a connection with this framing. `has_contexts` is true if
    /// the client selected a metadata context.
    pub fn flags(&self, framing: Framing, has_contexts: bool) -> TransmissionFlags {
        let features = self.0.features;
        let writes = !features.read_only;
        [
            (TransmissionFlags::READ_ONLY, features.read_only),
            (TransmissionFlags::SEND_FLUSH, features.flush),
            (TransmissionFlags::SEND_FUA, features.fua),
            (TransmissionFlags::ROTATIONAL, features.rotational),
            (TransmissionFlags::SEND_TRIM, features.trim && writes),
            (TransmissionFlags::SEND_WRITE_ZEROES, features.write_zeroes && writes),
            (TransmissionFlags::SEND_DF, framing.has_chunks()),
            (TransmissionFlags::CAN_MULTI_CONN, features.multi_conn),
            (TransmissionFlags::SEND_CACHE, features.cache),
            (TransmissionFlags::SEND_FAST_ZERO, features.fast_zero && writes),
            (TransmissionFlags::BLOCK_STATUS_PAYLOAD, framing.is_extended() && has_contexts),
        ]
        .into_iter()
        .fold(TransmissionFlags::HAS_FLAGS, |flags, (flag, is_set)| flags.with(flag, is_set))
    }
}

fn check_text(field: &'static str, text: &str) -> Result<(), ExportError> {
    if text.len() > STRING_BYTES_MAX {
        return Err(ExportError::StringTooLong { field, bytes: text.len(), max: STRING_BYTES_MAX });
    }
    match text.find('\0') {
        Some(at) => Err(ExportError::Nul { field, offset: at }),
        None => Ok(()),
    }
}
