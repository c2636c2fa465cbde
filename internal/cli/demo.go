package cli

import (
	"fmt"
	"io"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/demo"
)

func demoCommand(c *command) {
	var o demo.Options
	c.run = func([]string) error {
		level := "error"
		if c.asJSON {
			level = "warn"
		}
		o.Log = logger(c.std, level)
		p := painter(c.std, c.std.Err)
		if !c.asJSON {
			fmt.Fprintln(c.std.Err, p.bold(demo.Question))
			o.Progress = func(s bus.StatusData) { fmt.Fprintln(c.std.Err, p.dim(progress(s))) }
		}
		res, err := demo.Run(c.Context(), o)
		if err != nil {
			return err
		}
		if c.asJSON {
			return printJSON(c.std.Out, res)
		}
		p = painter(c.std, c.std.Out)
		_, err = io.WriteString(c.std.Out, render("demo.table", struct {
			demo.Result
			Bold, Dim, Green func(string) string
		}{res, p.bold, p.dim, p.green}))
		return err
	}
	c.Flags().StringVar(&o.Data, "data", "", "keep the data in this directory (default: a temporary one)")
	c.jsonFlag()
}
