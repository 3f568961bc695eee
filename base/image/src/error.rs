//! What is wrong with an image.

use crate::FileError;

/// What kind of thing is wrong.
#[derive(Debug, thiserror::Error)]
pub enum ImageFault {
    /// It is no image of this format.
    #[error("it is no image of this format: expected {expected}")]
    Magic {
        /// What is expected there.
        expected: &'static str,
    },
    /// The file is shorter than what is said to be in it.
    #[error("it ends behind the file's end at {file_len}: the file was cut off, restore it")]
    Short {
        /// Bytes of the file.
        file_len: u64,
    },
    /// A checksum does not fit what it is about.
    #[error("its checksum is wrong: it says {said:#010x}, the bytes give {computed:#010x}")]
    Checksum {
        /// As written.
        said: u32,
        /// As computed.
        computed: u32,
    },
    /// A value that the specification does not allow.
    #[error("it is {value}, allowed is {allowed}")]
    Value {
        /// As found.
        value: u64,
        /// What would be accepted, in words.
        allowed: &'static str,
    },
    /// Two things that must not overlap do.
    #[error("it overlaps {other}")]
    Overlap {
        /// The other one.
        other: &'static str,
    },
    /// Something that must be understood and is not.
    #[error("it is required and not known here: {what}")]
    Unsupported {
        /// What.
        what: String,
    },
    /// The image differs from the one whose metadata updates are to be redone.
    #[error("the image has been changed since: {what}")]
    Changed {
        /// The difference.
        what: &'static str,
    },
    /// Something that must be there is not.
    #[error("it is missing")]
    Missing,
    /// The image would grow beyond what its format can say.
    #[error("no more than {limit} is possible")]
    Full {
        /// What the format can say.
        limit: u64,
    },
    /// A write to an image that was opened for reading.
    #[error("the image is open for reading only")]
    ReadOnly,
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// What is wrong with an image, and where.
#[derive(Debug, thiserror::Error)]
#[error("{field} at offset {offset} of the image: {fault}")]
pub struct ImageError {
    /// The field or structure, by the name that the format's specification gives it.
    pub field: &'static str,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong.
    #[source]
    pub fault: ImageFault,
}

impl ImageError {
    /// Something is wrong with a field.
    #[must_use]
    pub fn new(field: &'static str, offset: u64, fault: impl Into<ImageFault>) -> Self {
        Self { field, offset, fault: fault.into() }
    }
}
