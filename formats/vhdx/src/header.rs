//! File type identifier and headers ([MS-VHDX] 2.2.1, 2.2.2).

use suimon_image::{ByteRange, ImageError, ImageFault, ImageFile};

use crate::Guid;
use crate::fields::{MB, bytes_at, checksum, put, store_checksum, u16_at, u32_at, u64_at};

/// Length in bytes of the section for headers and region tables at the start of the file.
pub(crate) const HEADER_SECTION_BYTES: u64 = MB;
pub(crate) const HEADER_OFFSETS: [u64; 2] = [64 << 10, 128 << 10];
const HEADER_LEN: usize = 4096;
const IDENTIFIER: &[u8; 8] = b"vhdxfile";
const CHECKSUM_AT: usize = 4;

/// Decoded header. Each file has two headers, of which one is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub sequence: u64,
    /// FileWriteGuid: changes whenever the file is opened for writing.
    pub file_write: Guid,
    /// DataWriteGuid: changes whenever guest-visible data may change.
    pub data_write: Guid,
    /// LogGuid: log entries with this GUID are valid; nil if the log is empty.
    pub log_guid: Guid,
    pub log_version: u16,
    pub log: ByteRange,
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN];
        put(&mut bytes, 0, b"head");
        put(&mut bytes, 8, &self.sequence.to_le_bytes());
        put(&mut bytes, 16, &self.file_write.to_stored_bytes());
        put(&mut bytes, 32, &self.data_write.to_stored_bytes());
        put(&mut bytes, 48, &self.log_guid.to_stored_bytes());
        put(&mut bytes, 64, &self.log_version.to_le_bytes());
        put(&mut bytes, 66, &1_u16.to_le_bytes());
        // The length of the log was read from a 32-bit field, or is that of a new image.
        let log_len = u32::try_from(self.log.len()).unwrap_or(u32::MAX);
        put(&mut bytes, 68, &log_len.to_le_bytes());
        put(&mut bytes, 72, &self.log.offset().to_le_bytes());
        store_checksum(&mut bytes, CHECKSUM_AT);
        bytes
    }

    fn parse(bytes: &[u8], offset: u64) -> Result<Self, ImageError> {
        if bytes_at(bytes, 0) != *b"head" {
            let fault = ImageFault::BadMagic { expected: "the signature \"head\"" };
            return Err(ImageError::new("Header.Signature", offset, fault));
        }
        let (stored, computed) = (u32_at(bytes, CHECKSUM_AT), checksum(bytes, CHECKSUM_AT));
        if stored != computed {
            let fault = ImageFault::Checksum { stored, computed };
            return Err(ImageError::new("Header.Checksum", offset + 4, fault));
        }
        let version = u16_at(bytes, 66);
        if version != 1 {
            let fault = ImageFault::Unsupported { feature: format!("version {version} of VHDX") };
            return Err(ImageError::new("Header.Version", offset + 66, fault));
        }
        let (log_len, log_offset) = (u64::from(u32_at(bytes, 68)), u64_at(bytes, 72));
        let log = region_range("Header.LogOffset", offset + 72, log_offset, log_len)?;
        Ok(Self {
            sequence: u64_at(bytes, 8),
            file_write: Guid::from_stored(bytes_at(bytes, 16)),
            data_write: Guid::from_stored(bytes_at(bytes, 32)),
            log_guid: Guid::from_stored(bytes_at(bytes, 48)),
            log_version: u16_at(bytes, 64),
            log,
        })
    }
}

/// Checks the file range of a region or the log: multiples of 1 MB after the header section.
/// `field` and the offset of its field are for the error.
pub(crate) fn region_range(
    field: &'static str,
    field_offset: u64,
    offset: u64,
    len: u64,
) -> Result<ByteRange, ImageError> {
    let invalid = |value, allowed| {
        ImageError::new(field, field_offset, ImageFault::InvalidValue { value, allowed })
    };
    if offset < HEADER_SECTION_BYTES || offset % MB != 0 {
        return Err(invalid(offset, "a multiple of 1 MB from 1 MB on"));
    }
    if len == 0 || len % MB != 0 {
        return Err(invalid(len, "a length of a multiple of 1 MB, not 0"));
    }
    ByteRange::new(offset, len).ok_or_else(|| invalid(offset, "a range that ends within 64 bits"))
}

/// The two headers of a file, of which one is current.
#[derive(Debug)]
pub(crate) struct Headers {
    pub current: Header,
    /// True if the second header is the current one.
    is_second: bool,
    /// Error of the header that is not current; `None` if it is valid.
    pub other_fault: Option<ImageError>,
}

impl Headers {
    /// Reads the file type identifier and both headers, and selects the current one.
    ///
    /// # Errors
    ///
    /// The file is not a VHDX image, or neither header is valid.
    pub(crate) fn read(file: &dyn ImageFile, file_len: u64) -> Result<Self, ImageError> {
        let short = || {
            let fault = ImageFault::Truncated { file_len };
            Err(ImageError::new("header section", 0, fault))
        };
        let mut identifier = [0; 8];
        if file_len < identifier.len() as u64 {
            return short();
        }
        read(file, "FileIdentifier.Signature", 0, &mut identifier)?;
        if identifier != *IDENTIFIER {
            let fault =
                ImageFault::BadMagic { expected: "\"vhdxfile\" at the beginning of the file" };
            return Err(ImageError::new("FileIdentifier.Signature", 0, fault));
        }
        // This is checked after the signature, because a file of another format may be shorter.
        if file_len < HEADER_SECTION_BYTES {
            return short();
        }
        let parsed = HEADER_OFFSETS.map(|offset| {
            let mut bytes = vec![0; HEADER_LEN];
            read(file, "Header", offset, &mut bytes)?;
            Header::parse(&bytes, offset)
        });
        match parsed {
            [Ok(first), Ok(second)] if first.sequence == second.sequence && first != second => {
                let value = second.sequence;
                let fault = ImageFault::InvalidValue {
                    value,
                    allowed: "another value than in the other header",
                };
                Err(ImageError::new("Header.SequenceNumber", HEADER_OFFSETS[1] + 8, fault))
            }
            [Ok(first), Ok(second)] => {
                let is_second = second.sequence > first.sequence;
                let current = if is_second { second } else { first };
                Ok(Self { current, is_second, other_fault: None })
            }
            [Ok(current), Err(fault)] => {
                Ok(Self { current, is_second: false, other_fault: Some(fault) })
            }
            [Err(fault), Ok(current)] => {
                Ok(Self { current, is_second: true, other_fault: Some(fault) })
            }
            [Err(first), Err(_)] => Err(first),
        }
    }

    /// Writes a changed header over the header that is not current, and makes it the current one.
    /// After a crash, at least one of the two headers is valid ([MS-VHDX] 2.2.2.1).
    pub(crate) fn update(
        &mut self,
        file: &dyn ImageFile,
        change: impl FnOnce(&mut Header),
    ) -> Result<(), ImageError> {
        let mut header = self.current;
        change(&mut header);
        header.sequence = header.sequence.checked_add(1).ok_or_else(|| {
            let fault = ImageFault::FormatLimit { limit: u64::MAX };
            ImageError::new("Header.SequenceNumber", HEADER_OFFSETS[0] + 8, fault)
        })?;
        let is_second = !self.is_second;
        let offset = if is_second { HEADER_OFFSETS[1] } else { HEADER_OFFSETS[0] };
        let failed = |error| ImageError::new("Header", offset, error);
        file.write_at(offset, &header.encode()).map_err(failed)?;
        file.flush().map_err(failed)?;
        *self = Self { current: header, is_second, other_fault: None };
        Ok(())
    }
}

/// Restores the signature of the file type identifier if it is damaged and at least one header is
/// valid. Returns true if it was written.
pub(crate) fn restore_identifier(file: &dyn ImageFile, file_len: u64) -> Result<bool, ImageError> {
    if file_len < HEADER_SECTION_BYTES {
        return Ok(false);
    }
    let mut identifier = [0; 8];
    read(file, "FileIdentifier.Signature", 0, &mut identifier)?;
    let is_whole = |offset: &u64| {
        let mut bytes = vec![0; HEADER_LEN];
        let result = read(file, "Header", *offset, &mut bytes);
        result.and_then(|()| Header::parse(&bytes, *offset)).is_ok()
    };
    if identifier == *IDENTIFIER || !HEADER_OFFSETS.iter().any(is_whole) {
        return Ok(false);
    }
    let failed = |error| ImageError::new("FileIdentifier.Signature", 0, error);
    file.write_at(0, IDENTIFIER).and_then(|()| file.flush()).map_err(failed)?;
    Ok(true)
}

/// Encodes the file type identifier with the name of the creator.
pub(crate) fn encode_identifier(creator: &str) -> Vec<u8> {
    let mut bytes = vec![0; 8 + 512];
    put(&mut bytes, 0, IDENTIFIER);
    for (index, unit) in creator.encode_utf16().take(255).enumerate() {
        put(&mut bytes, 8 + 2 * index, &unit.to_le_bytes());
    }
    bytes
}

fn read(
    file: &dyn ImageFile,
    field: &'static str,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), ImageError> {
    file.read_at(offset, bytes).map_err(|error| ImageError::new(field, offset, error))
}
