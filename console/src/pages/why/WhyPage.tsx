export function WhyPage() { return null; }
