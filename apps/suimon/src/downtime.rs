//! Downtime of a migration.

use suimon_contract::DOWNTIME_MS_MAX;

pub(crate) fn parse_downtime_ms(text: &str) -> Result<u32, String> {
    let time = humantime::parse_duration(text).ok();
    time.and_then(|time| u32::try_from(time.as_millis()).ok())
        .filter(|ms| (1..=DOWNTIME_MS_MAX).contains(ms))
        .ok_or_else(|| {
            format!("must be a time from 1ms to {}s, such as 300ms", DOWNTIME_MS_MAX / 1000)
        })
}
