package clock

import (
	"fmt"
	"strconv"
	"time"
)

// Words writes a duration as people do, in its one or two greatest units: 250 ms, 1.5 s, 1 min 5 s,
// 2 h, 3 d 4 h. Smaller units are rounded away.
func Words(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Words(-d)
	case d.Round(time.Millisecond) < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	case d.Round(time.Second) < time.Minute:
		return fmt.Sprintf("%.0f s", d.Round(time.Second).Seconds())
	case d.Round(time.Second) < time.Hour:
		return units(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	case d.Round(time.Minute) < 24*time.Hour:
		return units(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}
	return units(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

func units(d, great time.Duration, name string, small time.Duration, below string) string {
	text := fmt.Sprintf("%d %s", d/great, name)
	if rest := d % great / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, below)
	}
	return text
}
