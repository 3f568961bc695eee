export function PowerPage() { return null; }
