//! A disk as its clients see it.

use crate::export_error::ExportError;
use crate::flags::TransmissionFlags;
use crate::framing::Framing;
use crate::text::STRING_BYTES_MAX;
use crate::transmission::PAYLOAD_BYTES_MAX;

/// Most bytes of an export: clients count in signed numbers of 64 bits.
pub const EXPORT_BYTES_MAX: u64 = i64::MAX as u64;
/// Most bytes of a smallest block (section "Size constraints").
const BLOCK_BYTES_MAX: u32 = 1 << 16;
/// Fewest bytes of a preferred block (ibid.), and the smallest block of a client that has
/// not asked for ours.
const SECTOR_BYTES: u32 = 512;

/// What requests have to keep to (section "Size constraints"), in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it: a power of two, 1 to 65536.
    pub min: u32,
    /// Multiples of it are efficient: a power of two, at least `min` and 512.
    pub preferred: u32,
    /// The longest read or write: a multiple of `min`, from `preferred` to
    /// [`PAYLOAD_BYTES_MAX`].
    pub payload_max: u32,
}

impl Default for BlockSizes {
    /// What holds where nothing else was agreed on (section "Size constraints").
    fn default() -> Self {
        Self { min: 1, preferred: 4096, payload_max: PAYLOAD_BYTES_MAX }
    }
}

/// What a disk can do. What is not offered is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Writes, trims and zeroes are refused, and the latter two not offered.
    pub read_only: bool,
    /// Can make what it has answered durable (`NBD_CMD_FLUSH`).
    pub flush: bool,
    /// Can make a single write durable before it answers (`NBD_CMD_FLAG_FUA`).
    pub fua: bool,
    /// The medium turns: neighbours are near.
    pub rotational: bool,
    /// Takes hints that data is no longer needed (`NBD_CMD_TRIM`).
    pub trim: bool,
    /// Writes zeroes without being sent them (`NBD_CMD_WRITE_ZEROES`).
    pub write_zeroes: bool,
    /// Says at once whether zeroes would be faster than data (`NBD_CMD_FLAG_FAST_ZERO`).
    pub fast_zero: bool,
    /// What one connection has flushed, all connections see (`NBD_FLAG_CAN_MULTI_CONN`).
    pub multi_conn: bool,
    /// Takes hints that data will be needed (`NBD_CMD_CACHE`).
    pub cache: bool,
    /// Knows its holes (`base:allocation`).
    pub allocation: bool,
}

/// What an export is to be; [`Export::new`] checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSpec {
    /// What clients ask for: at most [`STRING_BYTES_MAX`] bytes, no NUL. May be empty.
    pub name: String,
    /// For people: as the name.
    pub description: String,
    /// Bytes: a multiple of the smallest block, at most [`EXPORT_BYTES_MAX`].
    pub size: u64,
    /// What requests have to keep to.
    pub block_sizes: BlockSizes,
    /// What the disk can do.
    pub features: Features,
}

/// A disk that clients can ask for, whose properties do not contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export(ExportSpec);

impl ExportSpec {
    /// A disk that is served over several connections, can make what it answered durable,
    /// and knows its holes; offsets and lengths are multiples of its sectors.
    #[must_use]
    pub fn of_disk(name: String, size: u64, sector_bytes: u32, read_only: bool) -> Self {
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
                allocation: true,
            },
        }
    }
}

impl Export {
    /// An export as specified.
    ///
    /// # Errors
    /// The first property that cannot be.
    pub fn new(spec: ExportSpec) -> Result<Self, ExportError> {
        check_text("name", &spec.name)?;
        check_text("description", &spec.description)?;
        let BlockSizes { min, preferred, payload_max } = spec.block_sizes;
        if !min.is_power_of_two() || min > BLOCK_BYTES_MAX {
            return Err(ExportError::BlockMin { found: min, max: BLOCK_BYTES_MAX });
        }
        let lowest = min.max(SECTOR_BYTES);
        if !preferred.is_power_of_two() || preferred < lowest {
            return Err(ExportError::BlockPreferred { found: preferred, lowest });
        }
        if payload_max < preferred || payload_max > PAYLOAD_BYTES_MAX || payload_max % min != 0 {
            return Err(ExportError::PayloadMax {
                found: payload_max,
                lowest: preferred,
                highest: PAYLOAD_BYTES_MAX,
                block: min,
            });
        }
        if spec.size > EXPORT_BYTES_MAX {
            return Err(ExportError::Size { found: spec.size, max: EXPORT_BYTES_MAX });
        }
        if spec.size % u64::from(min) != 0 {
            return Err(ExportError::SizeOffBlock { found: spec.size, block: min });
        }
        if spec.features.fast_zero && !spec.features.write_zeroes {
            return Err(ExportError::FastZeroAlone);
        }
        Ok(Self(spec))
    }

    /// What clients ask for.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// For people; may be empty.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// Bytes.
    pub const fn size(&self) -> u64 {
        self.0.size
    }

    /// What requests have to keep to.
    pub const fn block_sizes(&self) -> BlockSizes {
        self.0.block_sizes
    }

    /// What the disk can do.
    pub const fn features(&self) -> Features {
        self.0.features
    }

    /// Whether a client that has not asked for the sizes of blocks cannot use the export:
    /// it takes 512 bytes for the smallest (section "Size constraints").
    pub const fn needs_block_sizes(&self) -> bool {
        self.0.block_sizes.min > SECTOR_BYTES
    }

    /// What a client is told of the export that has agreed on this.
    pub fn flags(&self, framing: Framing, has_contexts: bool) -> TransmissionFlags {
        let can = self.0.features;
        let writes = !can.read_only;
        [
            (TransmissionFlags::READ_ONLY, can.read_only),
            (TransmissionFlags::SEND_FLUSH, can.flush),
            (TransmissionFlags::SEND_FUA, can.fua),
            (TransmissionFlags::ROTATIONAL, can.rotational),
            (TransmissionFlags::SEND_TRIM, can.trim && writes),
            (TransmissionFlags::SEND_WRITE_ZEROES, can.write_zeroes && writes),
            (TransmissionFlags::SEND_DF, framing.has_chunks()),
            (TransmissionFlags::CAN_MULTI_CONN, can.multi_conn),
            (TransmissionFlags::SEND_CACHE, can.cache),
            (TransmissionFlags::SEND_FAST_ZERO, can.fast_zero && writes),
            (TransmissionFlags::BLOCK_STATUS_PAYLOAD, framing.is_extended() && has_contexts),
        ]
        .into_iter()
        .fold(TransmissionFlags::HAS_FLAGS, |flags, (flag, on)| flags.with(flag, on))
    }
}

fn check_text(field: &'static str, text: &str) -> Result<(), ExportError> {
    if text.len() > STRING_BYTES_MAX {
        return Err(ExportError::TooLong { field, bytes: text.len(), max: STRING_BYTES_MAX });
    }
    match text.find('\0') {
        Some(at) => Err(ExportError::Nul { field, at }),
        None => Ok(()),
    }
}
