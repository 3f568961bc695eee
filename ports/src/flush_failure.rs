//! Record of the first failed flush of an open file.

use std::io;
use std::sync::OnceLock;

/// First failed flush of an open file.
///
/// Linux reports an error of writeback once per open file and may have discarded the data, so that
/// a later flush succeeds without it (`fsync(2)`). A device may have lost its write cache as well.
/// Flushes of the file therefore fail until the file is opened again.
#[derive(Debug, Default)]
pub struct FlushFailure(OnceLock<String>);

impl FlushFailure {
    /// Records the error of a flush, unless it [is transient](is_transient) or an earlier one is
    /// recorded.
    pub fn record(&self, error: &io::Error) {
        if !is_transient(error) {
            let _ = self.0.set(error.to_string());
        }
    }

    /// Returns the error of the first failed flush.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Returns an error if a flush has failed.
    ///
    /// # Errors
    /// A flush of the file has failed since the file was opened.
    pub fn check(&self) -> io::Result<()> {
        match self.reason() {
            None => Ok(()),
            Some(reason) => {
                let text = format!("a flush has failed since the file was opened: {reason}");
                Err(io::Error::other(text))
            }
        }
    }
}

/// Returns true if the error means that the system has not executed the operation, which may be
/// repeated.
#[must_use]
pub fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_kept_and_transient_ones_are_not() {
        let failure = FlushFailure::default();
        failure.record(&io::ErrorKind::Interrupted.into());
        failure.record(&io::ErrorKind::WouldBlock.into());
        failure.check().unwrap();
        failure.record(&io::ErrorKind::StorageFull.into());
        failure.record(&io::Error::other("second"));
        assert_eq!(
            failure.reason(),
            Some(&*io::Error::from(io::ErrorKind::StorageFull).to_string())
        );
        assert!(failure.check().unwrap_err().to_string().contains("no storage space"));
    }
}
