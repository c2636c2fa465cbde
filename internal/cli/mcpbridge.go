package cli

func mcpCommand(c *command) {
	c.personFlags()
	c.run = func([]string) error {
		to, err := c.client()
		if err != nil {
			return err
		}
		return to.Bridge(c.Context(), c.std.In, c.std.Out)
	}
}
