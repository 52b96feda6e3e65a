package main

import "github.com/spf13/cobra"

func (a *app) gcCommand() *cobra.Command { return &cobra.Command{Use: "gc"} }
