export function OffloadPage() { return null; }
