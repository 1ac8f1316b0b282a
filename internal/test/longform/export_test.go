package longform

// Detector says whether the race detector is on.
const Detector = detector
