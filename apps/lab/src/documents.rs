//! Documents that plans reproduce.

use suimon_lab_run::LocalizedText;

/// Returns the title of a document by its short name; the short name itself if unknown.
pub(crate) fn document_title(name: &str) -> LocalizedText {
    let (en, ja) = match name {
        "W12-VMQ" => (
            "Fujitsu: effect of Windows Server 2012 Dynamic VMQ, and points to note with NIC teaming (Windows Server 2012 Beta)",
            "富士通: Windows Server 2012 Dynamic VMQ の効果と NIC チーミング時の留意点 (Windows Server 2012 Beta)",
        ),
        "W03-TOE" => (
            "Nikkei ITpro: TCP/IP checksum and TCP segmentation offload on Windows Server 2003 (2004)",
            "日経 ITpro: Windows Server 2003 の TCP/IP チェックサムと TCP セグメンテーションのオフロード (2004)",
        ),
        "W12-IOV" => (
            "Dell Windows Engineering: SR-IOV in Windows Server 2012 Beta",
            "Dell Windows Engineering: Windows Server 2012 Beta の SR-IOV",
        ),
        "W08-HV" => (
            "Fujitsu: PRIMERGY performance report \"Hyper-V\", version 2.0, February 2010 (Windows Server 2008 R2)",
            "富士通: PRIMERGY パフォーマンスレポート「Hyper-V」第 2.0 版 2010 年 2 月 (Windows Server 2008 R2)",
        ),
        "W12-QOS" => (
            "Fujitsu: Windows Server 2012 R2 Hyper-V Storage QoS (Preview build 9431)",
            "富士通: Windows Server 2012 R2 Hyper-V Storage QoS (Preview ビルド 9431)",
        ),
        other => (other, other),
    };
    LocalizedText::new(en, ja)
}
